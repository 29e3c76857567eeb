// What the header of a chunk costs: to write and sum it, and to check and read it.
#include <benchmark/benchmark.h>

#include "transport/frame.h"

namespace fasthorovod::transport {
namespace {

const FrameHeader kSample = {.epoch = 1,
                             .group = 2,
                             .sequence = 3,
                             .transfer = 4,
                             .hop = 5,
                             .payload_bytes = 262144,
                             .fingerprint = 6};

void encode_header(benchmark::State& state) {
  FrameHeader header = kSample;
  for (auto unused : state) {
    benchmark::DoNotOptimize(encode(header));
    ++header.sequence;
  }
}
BENCHMARK(encode_header);

void decode_header(benchmark::State& state) {
  const auto bytes = encode(kSample);
  for (auto unused : state) {
    const auto header = decode(bytes);
    if (!header) {
      state.SkipWithError("a good header was refused");
      return;
    }
    benchmark::DoNotOptimize(header->sequence);
  }
}
BENCHMARK(decode_header);

}  // namespace
}  // namespace fasthorovod::transport
