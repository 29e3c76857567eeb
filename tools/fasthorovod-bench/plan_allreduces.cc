#include "tools/fasthorovod-bench/plan_allreduces.h"

#include <cstddef>

namespace fasthorovod::tools {
namespace {

constexpr std::uint64_t kSizes[] = {4U << 10, 64U << 10, 1U << 20, 16U << 20, 64U << 20};
constexpr double kUsOfSecond = 1e6;

}  // namespace

std::vector<AllreduceChoice> allreduce_choices(const PlanFacts& facts) {
  const int ranks = facts.world.size;
  const core::AllreducePlan& plan = facts.allreduces;
  if (ranks < 2 || facts.world.host_names.size() != static_cast<std::size_t>(ranks)) return {};
  std::vector<AllreduceChoice> choices;
  for (const std::uint64_t bytes : kSizes) {
    AllreduceChoice& choice = choices.emplace_back();
    choice.bytes = bytes;
    choice.used = plan.choose(bytes, ranks);
    for (int algorithm = 0; algorithm < core::kAllreduceAlgorithms; ++algorithm) {
      choice.predicted_us.push_back(kUsOfSecond *
                                    core::predict(static_cast<core::AllreduceAlgorithm>(algorithm),
                                                  bytes, ranks, plan.figures, plan.placement));
    }
  }
  return choices;
}

std::string mark_of_allreduces(const core::AllreducePlan& plan) {
  if (plan.forced) return "forced by FASTHOROVOD_ALLREDUCE";
  return plan.measured ? "measured" : "default";
}

}  // namespace fasthorovod::tools
