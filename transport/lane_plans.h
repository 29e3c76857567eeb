// The lane plans of all ranks of a world, as the roster implies them. Immutable; any thread.
#pragma once

#include <span>
#include <vector>

#include "core/lane_plan.h"
#include "transport/member.h"

namespace fasthorovod::transport {

class LanePlans final {
 public:
  LanePlans() = default;
  /// `members` by rank, this one among them.
  LanePlans(std::span<const Member> members, int rank);

  [[nodiscard]] const core::LanePlan& own() const { return own_; }
  [[nodiscard]] const core::LaneReasons& reasons() const { return reasons_; }

  /// How many ranks share the cores of this one's host, this one included.
  [[nodiscard]] int ranks_on_machine() const { return ranks_on_machine_; }

  /// How many flows this rank and a peer share; 0 with itself.
  [[nodiscard]] int flows_with(int peer) const { return flows_[static_cast<std::size_t>(peer)]; }
  /// The most that core::usual_flows says of any rank. The same on all ranks.
  [[nodiscard]] int usual_flows() const { return usual_flows_; }

  /// The least that any rank allows for its arena, in MiB. The same on all ranks.
  [[nodiscard]] int smallest_arena_mb() const { return smallest_arena_mb_; }

 private:
  core::LanePlan own_;
  core::LaneReasons reasons_;  // of that
  std::vector<int> flows_;     // by rank
  int usual_flows_ = 1;
  int ranks_on_machine_ = 1;
  int smallest_arena_mb_ = 0;
};

}  // namespace fasthorovod::transport
