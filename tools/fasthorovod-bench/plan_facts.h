// What `fasthorovod-bench plan` tells: each rank's choices with what they rest on, gathered on all
// ranks. Thread: owner. All ranks call the same in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/cost_model.h"
#include "core/flow_count.h"
#include "core/lane_plan.h"
#include "core/result.h"
#include "core/world.h"
#include "ops/engine.h"

namespace fasthorovod::tools {

/// A rank's lanes.
struct LaneFacts {
  core::LanePlan plan;
  core::LaneWish wish;  // its number of cores among it
  core::LaneSurroundings around;

  friend bool operator==(const LaneFacts&, const LaneFacts&);
};

/// The flows that one rank sends to another on, of all its lanes. Rates in bytes a second, 0 where
/// they are not known.
struct FlowFacts {
  int from = 0;
  int to = 0;
  int opened = 0;
  int in_use = 0;
  bool measures = false;
  bool tries = false;
  bool waits_for_work = false;
  double slowest = 0;  // of the flows in use whose rates are known
  double fastest = 0;
  double goodput = 0;
  std::vector<core::FlowCount::Experience> tried{};
};

/// All-reduces of one size.
struct TimeFacts {
  std::uint64_t bytes = 0;
  double median_us = 0;  // over iterations, of the slowest rank
  double cpu_us = 0;     // of an iteration, of all ranks and their auxiliaries
};

struct PlanFacts {
  core::World world;
  core::DataPlane data_plane = core::DataPlane::kTcp;
  std::string congestion;  // what flows of this rank use
  bool congestion_forced = false;
  core::AllreducePlan allreduces{};
  std::vector<LaneFacts> lanes{};  // by rank
  std::vector<FlowFacts> flows{};  // of all pairs that have any
  std::vector<TimeFacts> times{};
};

/// All but the times.
core::Result<PlanFacts> gather_plan(ops::Engine& engine, const core::Config& config);

/// The number of flows to each peer has been found, as far as this rank sees.
bool has_settled(const ops::LaneReport& report);

}  // namespace fasthorovod::tools
