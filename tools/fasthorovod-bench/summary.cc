#include "tools/fasthorovod-bench/summary.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace fasthorovod::tools {
namespace {

std::vector<double> medians(const Repetitions& repetitions) {
  std::vector<double> result;
  for (const std::vector<Sample>& samples : repetitions) {
    std::vector<double> times;
    times.reserve(samples.size());
    for (const Sample& sample : samples) times.push_back(sample.microseconds);
    result.push_back(median(std::move(times)));
  }
  return result;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Summary summarize(const Repetitions& repetitions) {
  Summary summary{.median_us = median(medians(repetitions)),
                  .least_us = std::numeric_limits<double>::max()};
  for (const std::vector<Sample>& samples : repetitions) {
    for (const Sample& sample : samples) {
      summary.least_us = std::min(summary.least_us, sample.microseconds);
      summary.wrong += sample.wrong;
    }
  }
  return summary;
}

double ratio(const Repetitions& one, const Repetitions& other) {
  const std::vector<double> dividends = medians(one);
  const std::vector<double> divisors = medians(other);
  std::vector<double> ratios;
  for (std::size_t at = 0; at < dividends.size(); ++at) {
    ratios.push_back(dividends[at] / divisors[at]);
  }
  return median(std::move(ratios));
}

}  // namespace fasthorovod::tools
