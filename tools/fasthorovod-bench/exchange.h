// Small talk among the ranks, over the engine that is measured.
#pragma once

#include <vector>

#include "core/result.h"
#include "ops/engine.h"

namespace fasthorovod::tools {

/// Gives every rank's `own` to every rank, in rank order, and so waits for all of them. All ranks
/// give equally many numbers.
core::Result<std::vector<double>> exchange_numbers(ops::Engine& engine,
                                                   const std::vector<double>& own);

}  // namespace fasthorovod::tools
