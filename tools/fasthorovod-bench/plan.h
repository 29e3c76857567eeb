// `fasthorovod-bench plan`: a short calibration, then what this world has chosen, and why.
#pragma once

#include "core/config.h"
#include "core/result.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/plan_options.h"

namespace fasthorovod::tools {

/// All ranks; prints on rank 0.
core::Status run_plan(ops::Engine& engine, const core::Config& config, const PlanOptions& options);

}  // namespace fasthorovod::tools
