// Replays the gradients of a model in training steps and prints how long a step takes and how much
// of its communication the computation does not hide. All contestants take turns, repetition by
// repetition.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "tools/fasthorovod-bench/step_contestant.h"

namespace fasthorovod::tools {

struct StepOptions {
  TrainingModel model;
  std::uint64_t scale = 1;           // divides the elements of each gradient
  std::vector<double> compute_ms{};  // computation of a step; one row each
  /// In place of compute_ms: the computation at which the last contestant (one lane with one flow)
  /// leaves this part of its step exposed.
  std::optional<double> exposed{};
  int steps = 10;
  int warm_up = 2;
  int repetitions = 3;
  bool json = false;  // one JSON object a line instead of the table
};

/// Runs all rows on this rank and prints on rank 0. The first contestant is ours: the others' times
/// are divided by its. How many values were wrong, or the first error.
core::Result<std::uint64_t> run_steps(const core::World& world,
                                      std::span<StepContestant* const> contestants,
                                      const StepOptions& options,
                                      const std::vector<Gradient>& gradients);

}  // namespace fasthorovod::tools
