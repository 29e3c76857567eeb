// What rank 0 makes of the roster for all-reduces between hosts. Pure functions; any thread.
#pragma once

#include <span>
#include <vector>

#include "core/cost_model.h"
#include "transport/member.h"

namespace fasthorovod::transport {

/// The ranks from which rank 0 learns how far hosts are from each other: one on each of some other
/// hosts. `members` by rank.
std::vector<int> ranks_to_probe(std::span<const Member> members);

/// The plan for groups of these ranks, with these figures, or with the stated ones. With what the
/// first of them was told; if that is to be deterministic, it depends on how many they are alone.
core::AllreducePlan plan_for(std::span<const Member> members, const core::CostFigures* measured);

}  // namespace fasthorovod::transport
