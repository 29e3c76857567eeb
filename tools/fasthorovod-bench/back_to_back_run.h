// All sizes of a back-to-back measurement of the engine alone.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/allreduce.h"
#include "tools/fasthorovod-bench/engine_contestant.h"

namespace fasthorovod::tools {

/// Prints on rank 0. How many values were wrong, or the first error.
core::Result<std::uint64_t> run_back_to_back(ops::Engine& engine, EngineContestant& ours,
                                             const AllreduceOptions& options);

}  // namespace fasthorovod::tools
