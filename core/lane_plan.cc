#include "core/lane_plan.h"

#include <algorithm>

#include "core/aux_cores.h"
#include "core/placement_model.h"

namespace fasthorovod::core {
namespace {

constexpr int kMostForAnyLink = 2;
constexpr int kMostForALink = 4;  // the model counts no memory bandwidth, which ends some time

int mbit(Goodput goodput) {
  constexpr double kBytesInMbit = 125'000;
  return static_cast<int>(std::clamp(goodput / kBytesInMbit, 1.0, double{kMostMbit}));
}

}  // namespace

LaneWish lane_wish(const Config& config, int cores, const LaneCosts& costs) {
  const LaneGoodputs goodputs = goodputs_of(costs, {});
  return {.lanes = config.lanes,
          .auxiliaries = config.auxiliaries,
          .flows = config.flows,
          .cores = config.cores > 0 ? config.cores : cores,
          .lane_mbit = mbit(goodputs.own),
          .auxiliary_mbit = mbit(goodputs.auxiliary),
          .data_plane = config.data_plane};
}

int spare_auxiliaries(const LaneWish& wish, int ranks_on_host) {
  const int ranks = std::max(ranks_on_host, 1);
  const int spare = std::max(wish.cores / ranks - kCoresOfARank, 0);
  if (wish.link_mbit == 0) return std::min(spare, kMostForAnyLink);
  return auxiliaries_to_fill(static_cast<double>(wish.link_mbit) / ranks, wish.lane_mbit,
                             wish.auxiliary_mbit, std::min(spare, kMostForALink));
}

LanePlan plan_lanes(const LaneWish& wish, const LaneSurroundings& around) {
  LanePlan plan{.data_plane = wish.data_plane};
  if (wish.auxiliaries) {
    plan.auxiliaries = *wish.auxiliaries;
  } else if (around.peers_elsewhere) {
    // A lane that stays at home needs no staging of ordinary memory.
    const int others = wish.lanes.value_or(kMostLanes) - 1;
    plan.auxiliaries = std::min(spare_auxiliaries(wish, around.ranks_on_host), others);
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
