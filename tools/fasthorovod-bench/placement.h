// fasthorovod-bench placement: what a lane carries alone on a core, on one that another thread
// wants, and beside one that fills the last-level cache: predicted from one calibration of the
// machine (calibration.h), then measured (lane_pump.h), turn by turn. And what auxiliaries add, by
// the model, and measured (auxiliary_gain.h) where cores are enough. It opens connections to itself
// and nothing else.
#pragma once

#include "core/log.h"
#include "core/result.h"

namespace fasthorovod::tools {

struct PlacementOptions {
  int rounds = 10;
  int time_ms = 200;    // of each measurement
  int auxiliaries = 0;  // measure the gain of so many, however few cores there are
  bool fresh = false;   // calibrate, also where that was done before
  bool model = false;   // print the model and measure nothing but the costs
  bool json = false;
};

/// Prints; says so where others used so much of the machine that the figures are void. False when
/// they are.
core::Result<bool> run_placement(const PlacementOptions& options, core::Log& log);

}  // namespace fasthorovod::tools
