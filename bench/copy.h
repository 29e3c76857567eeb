// What kernels are measured against in the same run: memcpy of the same bytes. All report GB/s,
// of 1e9 bytes.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fasthorovod::bench {

/// To be called at the end: each iteration took care of so many bytes. Shown as GB=.../s.
inline void count_bytes(benchmark::State& state, std::size_t bytes) {
  constexpr double kBytesOfAGigabyte = 1e9;
  state.counters["GB"] = benchmark::Counter(static_cast<double>(bytes) / kBytesOfAGigabyte,
                                            benchmark::Counter::kIsIterationInvariantRate);
}

/// memcpy of as many bytes as the argument says.
inline void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  for (auto iteration : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

}  // namespace fasthorovod::bench
