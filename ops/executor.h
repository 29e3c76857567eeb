// Executes plan items on one rank, in the plan's order, a few at a time: copies in, starts the
// schedule on the chunk board, copies out, completes the handles.
//
// All ranks start the items of the world in one order, each at most kWindow - 1 items ahead of the
// oldest that is in flight there. That bound is what makes parked chunks safe (see chunk_board.h)
// and lets the copies of one item run beside the transfers of the next. A barrier starts when
// nothing is in flight, and nothing starts beside it. Each process set has an order and a window of
// its own, and waits for nothing of the world or of another set: two ranks may be in different
// sets, and so in different orders.
//
// Thread: owner is the worker; the members called from other threads say so.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "compression/residual_store.h"
#include "core/cost_model.h"
#include "core/plan.h"
#include "core/result.h"
#include "core/world.h"
#include "ops/buffer_pool.h"
#include "ops/chunk_board.h"
#include "ops/collective_job.h"
#include "ops/pending_table.h"
#include "ops/routes.h"
#include "ops/worker.h"

namespace fasthorovod::ops {

class Executor final {
 public:
  static constexpr int kWindow = 4;

  struct Hooks {
    std::function<void(int peer)> need_flows;  // a schedule talks to this peer for the first time
    std::function<void(core::Error)>
        failed;                  // this rank can not take part in an item that others run
    std::function<void()> idle;  // the last item that was handed over is done
  };

  /// `allreduces` is the plan of the world.
  Executor(const core::World& world, int flows, const core::AllreducePlan& allreduces,
           ChunkBoard& board, Routes& routes, PendingTable& pending, Worker& worker, Hooks hooks);

  /// Takes an item over. Any thread; the items of a group are executed in the order of these calls.
  /// This rank is in `group`, which is the item's, or the item moves nothing.
  void execute(core::PlanItem item, std::vector<EntryPtr> entries, GroupPtr group);

  /// What found no shared memory tries again. Any thread.
  void retry();

  /// Nothing handed over is still running. Any thread; may change at once.
  [[nodiscard]] bool idle() const { return handed_over_.load(std::memory_order_acquire) == 0; }

  /// Items that did not start yet fail with `error`, and so does whatever is handed over later. Any
  /// thread; takes effect in the worker's order.
  void fail(core::Error error);

  [[nodiscard]] std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t tensors() const { return tensors_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t payload_bytes() const {
    return payload_bytes_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] compression::ResidualStore& residuals() { return residuals_; }
  [[nodiscard]] const compression::ResidualStore& residuals() const { return residuals_; }

  /// Where pooled buffers come from, as long as it has room. Before the first operation.
  void put_buffers_in(transport::ArenaHeap& heap) { pool_.use(heap); }

 private:
  using JobPtr =
      std::shared_ptr<CollectiveJob>;  // owners: the waiting list, then the operation's callback

  struct Queue {
    std::deque<JobPtr> waiting;
    std::map<std::uint64_t, const CollectiveJob*> in_flight;  // by the number of their start
    std::uint64_t started = 0;
  };

  // How an item without a codec moves.
  struct Plan {
    Shape shape;
    const Algorithm* algorithm = nullptr;
  };

  void start_what_fits();
  void start_what_fits(core::GroupId group);
  [[nodiscard]] core::Status prepare(CollectiveJob& job, Plan& plan);
  [[nodiscard]] bool may_start(const Queue& queue) const;
  [[nodiscard]] bool start(const JobPtr& job, bool alone);
  [[nodiscard]] bool transfer(const JobPtr& job, const Plan& plan, bool alone);
  [[nodiscard]] Operation operation_of(const JobPtr& job);
  void exchange_coded(const JobPtr& job);
  void piece_over(const JobPtr& job, std::uint32_t piece);
  void meet(int rank);
  void finish(const JobPtr& job, const core::Status& status);
  void count(const CollectiveJob& job);

  const core::World& world_;
  const int flows_;
  const core::AllreducePlan& allreduces_;
  ChunkBoard& board_;
  Routes& routes_;
  PendingTable& pending_;
  Worker& worker_;
  const Hooks hooks_;

  std::unordered_map<core::GroupId, Queue> queues_;
  std::set<int> peers_;  // flows were asked for
  std::optional<core::Error> failed_;
  BufferPool pool_;
  compression::ResidualStore residuals_;

  std::atomic<int> handed_over_{0};  // items between execute() and finish(); partner: idle()
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> tensors_{0};
  std::atomic<std::uint64_t> payload_bytes_{0};
};

}  // namespace fasthorovod::ops
