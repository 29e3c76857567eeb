// The checksum of headers, with and without the processor's instruction, against memcpy of the same
// bytes in the same run.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/copy.h"
#include "core/crc32c.h"

namespace fasthorovod::core {
namespace {

using bench::copy;
using bench::count_bytes;

template <auto Sum>
void sum(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> values(bytes, std::byte{1});
  for (auto iteration : state) benchmark::DoNotOptimize(Sum(values, 0));
  if (Sum(values, 0) != crc32c_by_table(values, 0)) state.SkipWithError("a wrong checksum");
  count_bytes(state, bytes);
}

void by_table(benchmark::State& state) { sum<crc32c_by_table>(state); }

void by_instruction(benchmark::State& state) {
  if (has_crc32c_instruction()) {
    sum<crc32c_by_instruction>(state);
  } else {
    state.SkipWithError("this processor has no such instruction");
  }
}

void sizes(benchmark::internal::Benchmark* bench) { bench->Arg(48)->Arg(256 << 10); }

BENCHMARK(copy)->Apply(sizes);
BENCHMARK(by_table)->Apply(sizes);
BENCHMARK(by_instruction)->Apply(sizes);

}  // namespace
}  // namespace fasthorovod::core
