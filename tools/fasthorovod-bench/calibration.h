// Measures what moving bytes costs on this machine, each part alone (core/lane_costs.h). Takes a
// few seconds. Thread: owner; the calling thread is bound to `place.own` meanwhile.
#pragma once

#include <optional>

#include "core/lane_costs.h"
#include "core/result.h"

namespace fasthorovod::tools {

struct CalibrationPlace {
  int own = 0;                   // the processor that is measured
  std::optional<int> other{};    // one on another core
  std::optional<int> sharing{};  // one on another core with the same last-level cache
};

core::Result<core::LaneCosts> calibrate(const CalibrationPlace& place);

}  // namespace fasthorovod::tools
