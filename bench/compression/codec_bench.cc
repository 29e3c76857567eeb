// Every codec of the table against memcpy of the same values in the same run: 256 KiB of values
// stay in the second level cache, 64 MiB come from memory. Bytes are those of the float32 values.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "bench/copy.h"
#include "compression/codec_table.h"
#include "compression/residual.h"

namespace fasthorovod::compression {
namespace {

// As in a group of two hosts; where more ranks make another answer, the name says how many.
constexpr int kRanks = 2;
constexpr float kThreshold = 0.5F;

/// Half of them are below the threshold, so that processors cannot guess.
std::vector<float> some_values(std::size_t elements) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 0.75F);
  std::vector<float> values(elements);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

/// What a codec works on, as in an all-reduce of one rank.
struct Buffers {
  Buffers(const Codec& codec, std::size_t elements, int ranks)
      : setting{.threshold = kThreshold, .ranks = ranks, .factor = 1.0 / ranks},
        values(some_values(elements)),
        sums(elements),
        results(elements),
        codes(codec.code_bytes(elements)),
        answer(codec.answer_bytes(elements, ranks)) {
    codec.encode(values, codes, setting);
    codec.add(codes, sums);
    codec.encode_answer(sums, answer, setting);
    values = some_values(elements);
  }

  CodecSetting setting;
  std::vector<float> values;
  std::vector<float> sums;
  std::vector<float> results;
  std::vector<std::byte> codes;
  std::vector<std::byte> answer;
};

bool is_the_result(const Buffers& buffers, const Codec& codec) {
  const double unit = (codec.keeps_residual() ? kThreshold : 1.0) * buffers.setting.factor;
  for (std::size_t i = 0; i < buffers.sums.size(); ++i) {
    const double expected = buffers.sums[i] * unit;
    if (std::abs(buffers.results[i] - expected) > std::abs(expected) / 256 + 1e-6) return false;
  }
  return true;
}

std::size_t elements_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0)) / sizeof(float);
}

template <typename Work>
void repeat(benchmark::State& state, const Work& work) {
  for (auto iteration : state) {
    work();
    benchmark::ClobberMemory();
  }
  bench::count_bytes(state, static_cast<std::size_t>(state.range(0)));
}

// Values of twobit get smaller with every encoding, so what was lost is put back each time as a
// step would: the figure includes compensate() and its reading of two more streams.
void encode_step(benchmark::State& state, const Codec& codec) {
  Buffers buffers(codec, elements_of(state), kRanks);
  const std::vector<float> gradient = buffers.values;
  std::vector<float> residual(gradient.size());
  repeat(state, [&] {
    compensate(gradient, residual, 0.5F, buffers.values);
    codec.encode(buffers.values, buffers.codes, buffers.setting);
    keep(buffers.values, residual);
  });
}

void encode(benchmark::State& state, const Codec& codec) {
  Buffers buffers(codec, elements_of(state), kRanks);
  repeat(state, [&] { codec.encode(buffers.values, buffers.codes, buffers.setting); });
}

void add(benchmark::State& state, const Codec& codec) {
  Buffers buffers(codec, elements_of(state), kRanks);
  repeat(state, [&] { codec.add(buffers.codes, buffers.sums); });
}

void encode_answer(benchmark::State& state, const Codec& codec, int ranks) {
  Buffers buffers(codec, elements_of(state), ranks);
  repeat(state, [&] { codec.encode_answer(buffers.sums, buffers.answer, buffers.setting); });
}

void decode_answer(benchmark::State& state, const Codec& codec, int ranks) {
  Buffers buffers(codec, elements_of(state), ranks);
  repeat(state, [&] { codec.decode_answer(buffers.answer, buffers.results, buffers.setting); });
  if (!is_the_result(buffers, codec)) state.SkipWithError("not what was encoded");
}

template <typename Function>
void add_bench(const std::string& name, const Function& function) {
  benchmark::RegisterBenchmark(name.c_str(), function)->Arg(256 << 10)->Arg(64 << 20);
}

void add_answer_benches(const CodecInfo& info, int ranks, const std::string& suffix) {
  const Codec& codec = *info.codec;
  const std::string name = std::string(info.name) + suffix;
  add_bench("encode_answer/" + name,
            [&codec, ranks](benchmark::State& state) { encode_answer(state, codec, ranks); });
  add_bench("decode_answer/" + name,
            [&codec, ranks](benchmark::State& state) { decode_answer(state, codec, ranks); });
}

void add_benches(const CodecInfo& info) {
  const Codec& codec = *info.codec;
  const std::string name(info.name);
  add_bench("encode/" + name, [&codec](benchmark::State& state) { encode(state, codec); });
  if (codec.keeps_residual()) {
    add_bench("step/" + name, [&codec](benchmark::State& state) { encode_step(state, codec); });
  }
  add_bench("add/" + name, [&codec](benchmark::State& state) { add(state, codec); });
  add_answer_benches(info, kRanks, "");
  for (const int ranks : {8, 128}) {
    if (codec.answer_bytes(1024, ranks) == codec.answer_bytes(1024, kRanks)) continue;
    add_answer_benches(info, ranks, "/" + std::to_string(ranks) + "ranks");
  }
}

const bool kAdded = [] {
  add_bench("copy", bench::copy);
  for (const CodecInfo& info : codec_table()) {
    if (info.codec != nullptr) add_benches(info);
  }
  return true;
}();

}  // namespace
}  // namespace fasthorovod::compression
