#include "ops/processor_costs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/clock.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

constexpr std::size_t kBytes = 1U << 20;
constexpr int kRounds = 4;

// The shortest of some rounds, the first of which finds the memory new: what interrupts a round
// only makes it longer.
template <typename Work>
double seconds_a_byte(Work work) {
  core::Duration shortest = core::Duration::max();
  for (int round = 0; round < kRounds; ++round) {
    const core::TimePoint start = core::Clock::now();
    work();
    shortest = std::min(shortest, core::Clock::now() - start);
  }
  return std::chrono::duration<double>(shortest).count() / kBytes;
}

}  // namespace

core::ProcessorCosts measure_processor_costs() {
  std::vector<std::byte> from(kBytes);
  std::vector<std::byte> to(kBytes);
  core::ProcessorCosts costs;
  costs.copied_seconds = seconds_a_byte([&] { std::memcpy(to.data(), from.data(), kBytes); });
  costs.reduced_seconds = seconds_a_byte([&] {
    reduce_into(to.data(), from.data(), kBytes / sizeof(float), core::DataType::kFloat32,
                core::Reduction::kSum);
  });
  return costs;
}

}  // namespace fasthorovod::ops
