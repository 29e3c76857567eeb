// A way to exchange the gradients of training steps between the same ranks. All are measured alike:
//
//     fill the gradients
//     tell each other the time and the errors of the step before, which lines the ranks up
//     forward pass: sleep                                            <- from here on it is timed
//     backward pass: sleep until the next gradient is there, start to exchange it, and so on
//     wait until all have been exchanged
//     check every value
//
// The passes sleep, as a processor does whose GPU computes: a third of the computation is the
// forward pass, two thirds the backward pass.
//
// Thread: owner. All ranks call the same in the same order.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/training_models.h"

namespace fasthorovod::tools {

/// The forward pass's part of the computation of a step.
inline constexpr double kForward = 1.0 / 3;

/// Steps of one model at one speed of computation, one after the other.
struct StepTurn {
  double compute_us = 0;
  int warm_up = 0;  // steps before timing starts
  int steps = 1;
};

class StepContestant {
 public:
  virtual ~StepContestant() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  /// The same samples on every rank, one for each step of the turn.
  virtual core::Result<std::vector<Sample>> take(const StepTurn& turn) = 0;
};

}  // namespace fasthorovod::tools
