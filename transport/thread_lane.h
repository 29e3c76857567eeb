// A lane whose loop runs in a thread of this process.
//
// Thread: any; stop() not from the lane's own thread.
#pragma once

#include <memory>
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
  [[nodiscard]] LaneStatistics statistics() const override;

 private:
  explicit ThreadLane(std::unique_ptr<Lane> lane);

  const std::unique_ptr<Lane> lane_;
  std::thread thread_;
};

}  // namespace fasthorovod::transport
