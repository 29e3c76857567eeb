#include "tools/fasthorovod-bench/lineup.h"

#include <algorithm>

#include "tools/fasthorovod-bench/exchange.h"

namespace fasthorovod::tools {

core::Status Lineup::meet() {
  const core::Result<std::vector<double>> all =
      exchange_numbers(engine_, {last_.microseconds, static_cast<double>(last_.wrong)});
  if (!all) return all.error();
  if (!timed_) return {};
  Sample sample;
  for (std::size_t at = 0; at < all->size(); at += 2) {
    sample.microseconds = std::max(sample.microseconds, (*all)[at]);
    sample.wrong += static_cast<std::uint64_t>((*all)[at + 1]);
  }
  samples_.push_back(sample);
  return {};
}

void Lineup::add(double microseconds, std::uint64_t wrong, bool timed) {
  const std::uint64_t before = timed_ ? 0 : last_.wrong;
  last_ = {microseconds, before + wrong};
  timed_ = timed;
}

}  // namespace fasthorovod::tools
