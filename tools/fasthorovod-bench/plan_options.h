// Options of `fasthorovod-bench plan`. Plain values.
#pragma once

namespace fasthorovod::tools {

struct PlanOptions {
  double seconds = 6;  // for the long all-reduces of the calibration, at most
  bool json = false;   // one JSON object instead of the tables
};

}  // namespace fasthorovod::tools
