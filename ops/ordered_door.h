// The ordered door on one rank: takes collectives, numbers them, starts a few of each group at a
// time in the order of their numbers, and sees them to their end. Groups do not wait for each
// other.
//
// When an operation fails on one rank (ranks disagree, a time limit passed), the coordinator tells
// all members. Here, by the state it finds the operation in: one that waits or runs fails with that
// error; one that was not called yet fails when it is called; one that had ended well leaves the
// error to the next call of its group, which starts nothing. When a member
// aborted the group, everything from that operation on fails.
//
// Thread: any for submit and what says so; the queues belong to the worker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/control_message.h"
#include "core/cost_model.h"
#include "core/world.h"
#include "ops/chunk_board.h"
#include "ops/deadline_queue.h"
#include "ops/lane_watch.h"
#include "ops/ordered_job.h"
#include "ops/routes.h"
#include "ops/taken_threads.h"
#include "ops/worker.h"
#include "transport/lane_set.h"

namespace fasthorovod::ops {

class OrderedDoor final {
 public:
  static constexpr int kWindow = 4;  // operations of a group in flight

  struct Hooks {
    std::function<void(int peer)> need_flows;           // an operation talks to this peer
    std::function<void(core::OperationFailed)> report;  // to the coordinator; any thread
    std::function<void()> idle;                         // nothing is pending any more
    std::function<void()> waits;                        // an operation of run() is not over soon
    std::function<transport::LaneSet&()> lanes;         // of this rank
  };

  /// `allreduces` is the plan of the world.
  OrderedDoor(const core::World& world, int flows, const core::AllreducePlan& allreduces,
              const GroupTable& groups, ChunkBoard& board, Routes& routes, Worker& worker,
              DeadlineQueue& deadlines, Hooks hooks);

  /// Any thread. Never completes inside the call.
  core::Result<Handle> submit(OrderedOperation operation);

  /// Any thread. The same as to submit an operation and to wait for it, without another thread
  /// where that is possible: while nothing else is under way, and the others keep up.
  core::Status run(OrderedOperation operation);

  /// Any thread: what is pending in the group fails, here and, by the coordinator, elsewhere; with
  /// `tell`, also what others call later.
  void remove(const GroupPtr& group, bool tell);

  /// Any thread: this rank found that a peer believes in another operation.
  void disagree(const Disagreement& disagreement);

  /// Any thread: a rank has left in good order, in these words: what waits for it inside a host
  /// fails. The board tells of what needs it over the network.
  void lose(int rank, const core::Error& words);

  /// Any thread: an operation needs a rank that has left.
  void depart(const Departure& departure);

  /// Any thread: an operation failed, by the coordinator's word.
  void failed(const core::OperationFailed& message);

  /// Any thread: submit() refuses from now on; the first error stands, but for an operation that
  /// had failed before it was called.
  void close(const core::Error& error);
  /// After close(): fails what did not start; what runs is ended by the board.
  void fail(const core::Error& error);
  /// After the worker has stopped: returns when no caller is in run() any more.
  void await_callers();

  /// Any thread: what found no shared memory tries again.
  void retry();

  [[nodiscard]] bool idle() const { return pending_.load() == 0; }
  [[nodiscard]] std::uint64_t operations() const {
    return operations_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t payload_bytes() const {
    return payload_bytes_.load(std::memory_order_relaxed);
  }

  /// Where pooled buffers come from, as long as it has room. Before the first operation.
  void put_buffers_in(transport::ArenaHeap& heap) { pool_.use(heap); }

 private:
  using JobPtr = std::shared_ptr<OrderedJob>;  // owners: the queue, then the operation's callback

  struct Count {
    std::uint64_t last = 0;                       // the sequence taken last
    std::optional<core::Error> owed;              // what the next call gets
    std::map<std::uint64_t, core::Error> doomed;  // failed before they were called
  };

  /// From `first` on nothing of a group works.
  struct End {
    std::uint64_t first = 0;
    core::Error error;
  };

  struct Queue {
    std::deque<JobPtr> waiting;
    std::map<std::uint64_t, JobPtr> in_flight;
    std::uint64_t last_seen = 0;     // of submitted operations
    std::set<std::uint64_t> failed;  // the latest that ended with an error here
    std::optional<End> end;
    std::optional<bool> on_one_host;  // its all-reduces can be run by HostPath::run
  };

  core::Result<JobPtr> take(OrderedOperation&& operation, bool& has_turn);
  std::optional<core::Status> run_with_turn(const JobPtr& job);
  [[nodiscard]] bool may_run_here(const OrderedJob& job, Queue& queue) const;
  std::optional<core::Status> run_here(const JobPtr& job, Queue& queue);
  void take_threads(const OrderedJob& job, TakenThreads& taken);
  void drive(const JobPtr& job, TakenThreads& taken);
  void count(const OrderedJob& job);
  void watch(const JobPtr& job);
  void await(const JobPtr& job, core::TimePoint now, bool tells_mates);
  void due(const JobPtr& job);
  void enqueue(const JobPtr& job);
  void start_what_fits(core::GroupId group);
  [[nodiscard]] bool start(const JobPtr& job, bool alone);
  [[nodiscard]] bool launch(const JobPtr& job, const Routes::Start& how);
  [[nodiscard]] Operation transfer(const JobPtr& job);
  void ended(const JobPtr& job, const core::Status& status);
  void finish(const JobPtr& job, const core::Status& status);
  void note_failed(core::GroupId group, std::uint64_t sequence);
  void apply(core::GroupId group, std::uint64_t sequence, const core::Error& error);
  void apply_end(core::GroupId group, std::uint64_t sequence, const core::Error& error);
  static std::vector<std::uint64_t> pending_from(const Queue& queue, std::uint64_t sequence);
  void expire(const JobPtr& job, bool again);
  [[nodiscard]] core::Error lateness(const OrderedJob& job, const std::vector<int>& awaited) const;
  [[nodiscard]] core::Error removal_of(const Group& group) const;
  void fail_and_report(const JobPtr& job, const core::Error& error);
  void owe(core::GroupId group, const core::Error& error);
  void doom(core::GroupId group, std::uint64_t sequence, const core::Error& error);
  std::optional<core::Error> take_doom(const OrderedJob& job);
  [[nodiscard]] core::Error refusal(const OrderedOperation& operation, const Count& count) const;
  void fail_if_lost(const JobPtr& job);

  const core::World& world_;
  const int flows_;
  const core::AllreducePlan& allreduces_;
  const GroupTable& groups_;
  ChunkBoard& board_;
  Routes& routes_;
  Worker& worker_;
  DeadlineQueue& deadlines_;
  const Hooks hooks_;

  std::mutex mutex_;
  std::unordered_map<core::GroupId, Count> counts_;
  std::optional<core::Error> closed_;
  int callers_ = 0;  // in run()
  std::condition_variable no_more_callers_;

  std::unordered_map<core::GroupId, Queue> queues_;  // worker
  std::set<core::GroupId> removed_;                  // worker; an id is never used again
  std::optional<core::Error> failed_;                // worker
  std::map<int, core::Error> left_;                  // worker: ranks, in what words
  BufferPool pool_;                                  // worker
  LaneWatch lane_watch_;                             // worker

  std::atomic<int> pending_{0};  // handles not done; partner: idle()
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> payload_bytes_{0};
};

}  // namespace fasthorovod::ops
