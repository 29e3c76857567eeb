// The part of a plan that says which algorithm all-reduces between hosts use, by size, and why.
// Thread: owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cost_model.h"
#include "tools/fasthorovod-bench/plan_facts.h"

namespace fasthorovod::tools {

/// What the model predicts for a size, by core::AllreduceAlgorithm, and what is used.
struct AllreduceChoice {
  std::uint64_t bytes = 0;
  std::vector<double> predicted_us{};
  core::AllreduceAlgorithm used = core::AllreduceAlgorithm::kRing;
};

/// Of the world, by size; none where ranks share hosts, since a ring joins hosts of several ranks.
std::vector<AllreduceChoice> allreduce_choices(const PlanFacts& facts);

/// "measured", "default" or "forced by ...".
std::string mark_of_allreduces(const core::AllreducePlan& plan);

}  // namespace fasthorovod::tools
