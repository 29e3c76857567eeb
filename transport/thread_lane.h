// A lane whose loop runs in a thread of this process; or, while that thread sleeps, in another one
// that has taken it over.
//
// The thread sleeps in the lane's poll. Who takes the loop wakes it once, and it parks. It stays
// parked for a millisecond or two after the loop was given back, so that who takes the loop again
// and again pays for that once; wake() ends the rest.
//
// Thread: any; stop() not from the lane's own thread, nor from who has taken the loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "core/result.h"
#include "transport/lane_place.h"

namespace fasthorovod::transport {

class ThreadLane final : public LanePlace {
 public:
  /// Starts the thread. `work` outlives the lane.
  static core::Result<std::unique_ptr<ThreadLane>> start(const LaneOptions& options,
                                                         ChunkWork& work);
  ~ThreadLane() override;
  ThreadLane(const ThreadLane&) = delete;
  ThreadLane& operator=(const ThreadLane&) = delete;

  void add_flow(int peer, FileDescriptor socket) override;
  void wake() override;
  void begin_stop() override;
  void stop() override;

  bool try_take() override;
  bool step(std::chrono::milliseconds timeout) override;
  [[nodiscard]] bool stopping() const override;
  void give_back(bool at_once) override;

  [[nodiscard]] LaneStatistics statistics() const override;

 private:
  enum class Owner {
    kThread,  // makes the turns
    kAsked,   // it is to park after this turn
    kNobody,  // the thread is parked
    kCaller,
  };

  explicit ThreadLane(std::unique_ptr<Lane> lane);
  void run();
  void park();
  void unpark();

  const std::unique_ptr<Lane> lane_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Owner> owner_{Owner::kThread};  // changed under the lock; partner of kNobody: wake()
  bool resumes_ = false;                      // the thread rests no longer
  unsigned takes_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace fasthorovod::transport
