#include "transport/allreduce_plans.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "transport/hop_probe.h"
#include "transport/lane_plans.h"

namespace fasthorovod::transport {
namespace {

// Cores belong to the real host, also where ranks pose as those of several.
double cores_a_rank(std::span<const Member> members) {
  std::map<std::string, int> ranks;
  for (const Member& member : members) ++ranks[member.real_host];
  double least = std::max(members[0].wish.cores, 1);
  for (const Member& member : members) {
    least = std::min(least,
                     static_cast<double>(std::max(member.wish.cores, 1)) / ranks[member.real_host]);
  }
  return least;
}

}  // namespace

std::vector<int> ranks_to_probe(std::span<const Member> members) {
  std::set<std::string> seen{members[0].placement.host_identity};
  std::vector<int> ranks;
  for (std::size_t rank = 1; rank < members.size() && ranks.size() < HopProbe::kMostRanks; ++rank) {
    if (!seen.insert(members[rank].placement.host_identity).second) continue;
    ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

core::AllreducePlan plan_for(std::span<const Member> members, const core::CostFigures* measured) {
  const core::AllreduceWish& wish = members[0].allreduce;
  core::CostPlacement placement;
  if (!wish.deterministic) {
    placement = {.flows = LanePlans(members, 0).usual_flows(),
                 .cores_a_rank = cores_a_rank(members)};
  }
  core::AllreducePlan plan =
      core::plan_allreduce(static_cast<int>(members.size()),
                           measured == nullptr ? core::CostFigures{} : *measured, placement);
  plan.forced = wish.forced;
  plan.measured = measured != nullptr;
  return plan;
}

}  // namespace fasthorovod::transport
