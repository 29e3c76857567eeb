// The engine thread's half of an operation: what was submitted goes to the coordinator, plans that
// come back go to the executor. On rank 0 the coordinator itself lives here.
//
// Thread: owner (the engine thread).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/config.h"
#include "core/control_message.h"
#include "core/coordinator.h"
#include "core/log.h"
#include "core/response_cache.h"
#include "core/world.h"
#include "ops/executor.h"
#include "ops/pending_table.h"
#include "ops/process_sets.h"

namespace fasthorovod::ops {

class Negotiator final {
 public:
  struct Hooks {
    std::function<void(int rank, const core::ControlMessage& message)> send;
    std::function<void(core::Duration delay, std::function<void()> function)> call_after;
    std::function<void(core::Error error)> fault;  // somebody broke the protocol
  };

  Negotiator(const core::World& world, const core::Config& config, PendingTable& pending,
             ProcessSets& sets, Executor& executor, core::Log& log, Hooks hooks);

  /// Tells the coordinator what was submitted since the last call.
  void announce();

  /// Rank 0: a rank's submissions came.
  void submitted(int rank, const core::Submissions& submissions);

  /// Rank 0: a rank has left in good order.
  void left(int rank);

  /// A plan came (on rank 0: from its own coordinator).
  void apply(core::Plan plan);

  /// Rank 0: asks the coordinator for plans, and comes back when it may have more.
  void pump();

  /// The number of the last plan that was applied (on rank 0: made).
  [[nodiscard]] std::uint64_t plans_applied() const { return plans_applied_; }

  /// Rank 0: the last plan in which a rank has something to do.
  [[nodiscard]] std::uint64_t last_plan_of(int rank) const {
    return last_plans_[static_cast<std::size_t>(rank)];
  }

  /// Requests that cost one bit. Any thread.
  [[nodiscard]] std::uint64_t cache_hits() const {
    return cache_hits_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] bool coordinates() const { return coordinator_.has_value(); }
  [[nodiscard]] core::Submissions nothing_yet() const;
  void classify(const EntryPtr& entry, core::Submissions& submissions);
  void tell_coordinator(const core::Submissions& submissions);
  void note_who_takes_part(const core::Plan& plan);
  void hand_over(core::PlanItem item);
  void hand_over_join(core::PlanItem item);
  void change_groups(core::PlanItem item);
  std::vector<EntryPtr> take_entries(const core::PlanItem& item, core::GroupId group);
  void wake_at(core::TimePoint when);

  const core::World& world_;
  PendingTable& pending_;
  ProcessSets& sets_;
  Executor& executor_;
  core::Log& log_;
  const Hooks hooks_;

  std::optional<core::Coordinator> coordinator_;  // rank 0 only
  std::vector<std::uint64_t> last_plans_;         // rank 0 only: by rank, see last_plan_of()
  core::ResponseCache cache_;
  std::uint64_t plans_applied_ = 0;
  EntryPtr joining_;                     // this rank has joined and waits for the others
  std::optional<core::TimePoint> wake_;  // when the next timer fires
  std::atomic<std::uint64_t> cache_hits_{0};
};

}  // namespace fasthorovod::ops
