// What the header of a chunk costs: to write and sum it, to check and read it, and how much that
// adds to a memcpy of the chunk, in the same run.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "bench/copy.h"
#include "transport/frame.h"

namespace fasthorovod::transport {
namespace {

using bench::copy;
using bench::count_bytes;

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
  count_bytes(state, kFrameHeaderBytes);
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
  count_bytes(state, kFrameHeaderBytes);
}
BENCHMARK(decode_header);

// A chunk as it crosses a flow, but for the kernel's part: header, payload, header again.
void frame_chunk(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  FrameHeader header = kSample;
  header.payload_bytes = bytes;
  for (auto unused : state) {
    const FrameHeaderBytes sent = encode(header);
    std::memcpy(to.data(), from.data(), bytes);
    const auto received = decode(sent);
    if (!received || received->sequence != header.sequence) {
      state.SkipWithError("a good header was refused");
      return;
    }
    benchmark::ClobberMemory();
    ++header.sequence;
  }
  count_bytes(state, bytes);
}

void chunks(benchmark::internal::Benchmark* bench) { bench->Arg(4 << 10)->Arg(256 << 10); }

BENCHMARK(copy)->Apply(chunks);
BENCHMARK(frame_chunk)->Apply(chunks);

}  // namespace
}  // namespace fasthorovod::transport
