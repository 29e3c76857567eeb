#include "core/lane_plan.h"

#include <algorithm>

namespace fasthorovod::core {
namespace {

// The program's own threads, and those of its rank, want about so many.
constexpr int kCoresOfARank = 4;
// More did not pay where it was measured: one core drives several flows to the limit of a link.
constexpr int kMostSpareAuxiliaries = 2;

}  // namespace

LaneWish lane_wish(const Config& config, int cores) {
  return {.lanes = config.lanes,
          .auxiliaries = config.auxiliaries,
          .flows = config.flows,
          .cores = config.cores > 0 ? config.cores : cores,
          .data_plane = config.data_plane};
}

int spare_auxiliaries(int cores, int ranks_on_host) {
  return std::clamp(cores / std::max(ranks_on_host, 1) - kCoresOfARank, 0, kMostSpareAuxiliaries);
}

LanePlan plan_lanes(const LaneWish& wish, const LaneSurroundings& around) {
  LanePlan plan{.data_plane = wish.data_plane};
  if (wish.auxiliaries) {
    plan.auxiliaries = *wish.auxiliaries;
  } else if (around.peers_elsewhere) {
    // A lane that stays at home needs no staging of ordinary memory.
    const int others = wish.lanes.value_or(kMostLanes) - 1;
    plan.auxiliaries = std::min(spare_auxiliaries(wish.cores, around.ranks_on_host), others);
  }
  plan.lanes = wish.lanes.value_or(std::min(1 + plan.auxiliaries, kMostLanes));
  plan.measures_flows = !wish.flows;
  plan.flows = flows_of_a_lane(wish.flows, plan.lanes);
  return plan;
}

int flows_of_a_lane(const std::optional<int>& wish, int lanes) {
  return wish.value_or(std::max(kUsualFlows, kMostChosenFlows / std::max(lanes, 1)));
}

int flows_between(const LanePlan& a, const LanePlan& b) {
  if (a.measures_flows == b.measures_flows) return std::max(a.lanes * a.flows, b.lanes * b.flows);
  const LanePlan& told = a.measures_flows ? b : a;
  return std::max({told.lanes * told.flows, a.lanes, b.lanes});
}

int usual_flows(const LanePlan& plan) {
  return plan.lanes * (plan.measures_flows ? kUsualFlows : plan.flows);
}

}  // namespace fasthorovod::core
