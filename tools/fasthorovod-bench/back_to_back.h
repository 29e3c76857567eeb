// The loop of one size for a comparison between programs that cannot share processes, so that each
// of them is measured alike:
//
//     fill, all-reduce, check every value, set to zero       the first warm-up
//     all-reduce a few more times                            unless that one took all the time
//     all-reduce, all-reduce, ...                            each is timed; nothing between them
//     fill, all-reduce, check every value
//
// Nothing lines the ranks up between the timed iterations, as nothing does in a training step. The
// times are those of rank 0; in the long run every rank has the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {

/// How many iterations are timed.
struct Pace {
  int iterations = 20;  // where there is no budget
  double budget_s = 0;  // not 0: as many as fit in these seconds by what the warm-up took
  int warm_up = 1;      // at least so many after the first
};

/// One rank of something that all-reduces. Thread: owner.
class BackToBackRank {
 public:
  virtual ~BackToBackRank() = default;

  /// Of the buffer that is measured, in place.
  virtual core::Status allreduce() = 0;

  /// Gives every rank's `own` to every rank, in rank order. All ranks give equally many.
  virtual core::Result<std::vector<double>> exchange(const std::vector<double>& own) = 0;
};

/// What rank 0 measured; the sums are of all ranks.
struct Timing {
  std::vector<double> iterations_us{};
  double cpu_us = 0;        // processor time of an iteration: all ranks' processes and children
  std::uint64_t wrong = 0;  // values, of all ranks and both checks
};

/// The buffer and what goes into and comes out of it.
struct Task {
  std::span<std::byte> values;
  const Pattern& own;
  const Pattern& expected;
};

/// Called with each timed iteration of this rank as it ends.
using OnIteration = std::function<void(double microseconds)>;

/// How many of `iteration_s` each fit into the pace: at least 2, at most 2000.
int iterations_of(const Pace& pace, double iteration_s);

/// All ranks call it with the same pace. The first error, if any.
core::Result<Timing> time_back_to_back(BackToBackRank& rank, const Task& task, const Pace& pace,
                                       const OnIteration& on_iteration);

}  // namespace fasthorovod::tools
