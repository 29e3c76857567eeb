#include "transport/lane_plans.h"

#include <algorithm>
#include <map>
#include <string>

namespace fasthorovod::transport {
namespace {

// Cores belong to the real host, also where ranks pose as those of several.
std::vector<core::LaneReasons> reasons_of(std::span<const Member> members) {
  std::map<std::string, int> ranks;
  for (const Member& member : members) ++ranks[member.real_host];
  const bool several = std::ranges::any_of(members, [&](const Member& member) {
    return member.placement.host_identity != members.front().placement.host_identity;
  });
  std::vector<core::LaneReasons> reasons;
  for (const Member& member : members) {
    reasons.push_back({member.wish, {ranks[member.real_host], several}});
  }
  return reasons;
}

}  // namespace

LanePlans::LanePlans(std::span<const Member> members, int rank) {
  std::vector<core::LanePlan> plans;
  for (const core::LaneReasons& reasons : reasons_of(members)) {
    if (plans.size() == static_cast<std::size_t>(rank)) reasons_ = reasons;
    plans.push_back(core::plan_lanes(reasons.wish, reasons.around));
  }
  const std::string& machine = members[static_cast<std::size_t>(rank)].real_host;
  ranks_on_machine_ = static_cast<int>(std::ranges::count(members, machine, &Member::real_host));
  own_ = plans[static_cast<std::size_t>(rank)];
  for (const core::LanePlan& plan : plans) {
    flows_.push_back(core::flows_between(own_, plan));
    usual_flows_ = std::max(usual_flows_, core::usual_flows(plan));
  }
  flows_[static_cast<std::size_t>(rank)] = 0;
  smallest_arena_mb_ = std::ranges::min_element(members, {}, &Member::arena_mb)->arena_mb;
}

}  // namespace fasthorovod::transport
