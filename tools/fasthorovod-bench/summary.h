// From the samples of one size to the numbers of its row. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/fasthorovod-bench/contestant.h"

namespace fasthorovod::tools {

/// What one contestant did at one size: the samples of each repetition, all of them equally many.
using Repetitions = std::vector<std::vector<Sample>>;

struct Summary {
  double median_us = 0;  // of the repetitions' medians
  double least_us = 0;   // of all
  std::uint64_t wrong = 0;
};

/// The middle one, or the mean of the middle two. Not empty.
double median(std::vector<double> values);

/// At least one sample.
Summary summarize(const Repetitions& repetitions);

/// The median, over the repetitions, of one contestant's median by the other's.
double ratio(const Repetitions& one, const Repetitions& other);

}  // namespace fasthorovod::tools
