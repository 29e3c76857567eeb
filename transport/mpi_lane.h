// A lane whose chunks travel over MPI: one thread that moves blocks to and from all other ranks.
//
// All ranks of the world share a flow from the beginning, so none is opened: add_peer() only says
// to whom chunks may go. A lane that stops says so to every rank, and every rank sees every other
// one's flow end.
//
// MPI has nothing to sleep on. For 10 us after anything moved the thread looks again and again;
// then it sleeps between two looks, half as long as nothing has moved, up to 50 us while anything
// is expected, and up to 1 ms otherwise. wake() ends a sleep at once.
//
// Thread: any; stop() not from the lane's own thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "transport/lane_counters.h"
#include "transport/lane_place.h"
#include "transport/mpi_block.h"
#include "transport/mpi_blocks.h"
#include "transport/mpi_flow.h"

namespace fasthorovod::transport {

struct MpiLaneOptions {
  int rank = 0;
  int size = 1;
  std::uint64_t mark = 0;  // of this world: no other that these processes were in has the same
  std::chrono::milliseconds close_limit{2000};  // at the end, for what was sent to arrive
  /// Whether operations are in flight, so that chunks may come; cheap, any thread.
  std::function<bool()> busy = [] { return false; };
};

class MpiLane final : public LanePlace {
 public:
  /// Blocks that MPI still holds when the lane has stopped; whoever gets them keeps them until MPI
  /// lets go. Called once, on the lane's thread.
  using Keep = std::function<void(std::vector<MpiBlockOnItsWay>)>;

  /// Starts the thread, which calls neither `mpi` nor `work` before the first wake(), add_peer() or
  /// stop(): other ranks may send before this one is ready. Both outlive the lane; nobody else
  /// calls `mpi` meanwhile.
  MpiLane(const MpiLaneOptions& options, MpiBlocks& mpi, ChunkWork& work, Keep keep);
  ~MpiLane() override;
  MpiLane(const MpiLane&) = delete;
  MpiLane& operator=(const MpiLane&) = delete;

  /// There are no sockets here: it is closed.
  void add_flow(int peer, FileDescriptor socket) override;
  void add_peer(int peer) override;
  void wake() override;
  void begin_stop() override;
  void stop() override;
  [[nodiscard]] LaneStatistics statistics() const override;

 private:
  void run();
  void await_first_wake();
  bool turn();
  MpiFlow& flow_of(int peer);
  void let_in();
  bool collect();
  bool serve(MpiFlow& flow, bool woken);
  void rest();
  void close();
  bool is_closing();

  const MpiLaneOptions options_;
  MpiBlocks& mpi_;
  ChunkWork& work_;
  const Keep keep_;
  LaneCounters counters_;
  MpiBlockPool pool_;
  const MpiFlowHome home_;
  std::unordered_map<int, std::unique_ptr<MpiFlow>> flows_;
  bool refused_ = false;          // there was work in this turn that take() did not give
  bool under_way_ = false;        // blocks are in MPI's hands
  core::TimePoint last_moved_{};  // when anything did

  // Partners, both sequentially consistent, as in lane.cc: wake() sets woken_, then looks at
  // idle_; the lane sets idle_, then looks at woken_.
  std::atomic<bool> woken_{false};
  std::atomic<bool> idle_{false};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable bell_;
  std::vector<int> added_;  // peers; not let in yet
  std::thread thread_;
};

}  // namespace fasthorovod::transport
