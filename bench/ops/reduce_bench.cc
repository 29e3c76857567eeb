// Local arithmetic against memcpy of the same bytes in the same run: a reduction reads two streams
// and writes one, so half of memcpy's rate is what memory allows once the buffers have left the
// caches.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/copy.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

using bench::copy;
using bench::count_bytes;
using core::DataType;

// Zeros stay zeros, so that no iteration runs into infinities; the sum of ones is checked once.
void sum(benchmark::State& state, DataType type) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t count = bytes / core::size_of(type);
  const std::vector<std::byte> values(bytes);
  std::vector<std::byte> accumulator(bytes);
  for (auto iteration : state) {
    reduce_into(accumulator.data(), values.data(), count, type, core::Reduction::kSum);
    benchmark::ClobberMemory();
  }
  if (accumulator != values) state.SkipWithError("a sum of zeros is not zero");
  count_bytes(state, bytes);
}

// Two buffers into one of them, as a rank of a host does with its share. Bytes are those of one.
void sum_many(benchmark::State& state, DataType type) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> zeros(bytes);
  std::vector<std::byte> to(bytes);
  const std::byte* sources[] = {zeros.data(), to.data()};
  for (auto iteration : state) {
    reduce_many(to.data(), sources, bytes / core::size_of(type), type, core::Reduction::kSum);
    benchmark::ClobberMemory();
  }
  if (to != zeros) state.SkipWithError("a sum of zeros is not zero");
  count_bytes(state, bytes);
}

void scale(benchmark::State& state, DataType type) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> from(bytes);
  std::vector<std::byte> to(bytes, std::byte{1});
  for (auto iteration : state) {
    copy_scaled(to.data(), from.data(), bytes / core::size_of(type), type, 0.5);
    benchmark::ClobberMemory();
  }
  if (to != from) state.SkipWithError("scaled zeros are not zero");
  count_bytes(state, bytes);
}

void sizes(benchmark::internal::Benchmark* bench) { bench->Arg(256 << 10)->Arg(64 << 20); }

BENCHMARK(copy)->Apply(sizes);
BENCHMARK_CAPTURE(sum, float32, DataType::kFloat32)->Apply(sizes);
BENCHMARK_CAPTURE(sum, float64, DataType::kFloat64)->Apply(sizes);
BENCHMARK_CAPTURE(sum, float16, DataType::kFloat16)->Apply(sizes);
BENCHMARK_CAPTURE(sum, bfloat16, DataType::kBfloat16)->Apply(sizes);
BENCHMARK_CAPTURE(sum, int64, DataType::kInt64)->Apply(sizes);
BENCHMARK_CAPTURE(sum_many, float32, DataType::kFloat32)->Apply(sizes);
BENCHMARK_CAPTURE(sum_many, bfloat16, DataType::kBfloat16)->Apply(sizes);
BENCHMARK_CAPTURE(scale, float32, DataType::kFloat32)->Apply(sizes);
BENCHMARK_CAPTURE(scale, float16, DataType::kFloat16)->Apply(sizes);
BENCHMARK_CAPTURE(scale, bfloat16, DataType::kBfloat16)->Apply(sizes);
BENCHMARK_CAPTURE(scale, int64, DataType::kInt64)->Apply(sizes);

}  // namespace
}  // namespace fasthorovod::ops
