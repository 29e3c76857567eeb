#include <gtest/gtest.h>

#include <algorithm>

#include "compression/kernels/targets.h"
#include "ops/reduce.h"
#include "test/ops/scalar_reference.h"

// After targets.h, which says what there is to choose from.
#include "test/compression/each_target.h"

namespace fasthorovod::ops {
namespace {

using compression::kCounts;
using compression::kOffsets;
using compression::Misplaced;
using core::DataType;
using core::Reduction;

using ReduceMany = compression::EachTarget;

std::vector<Bytes> any_inputs(DataType type, std::size_t sources, std::size_t count,
                              std::mt19937_64& random) {
  std::vector<Bytes> inputs;
  for (std::size_t i = 0; i < sources; ++i) inputs.push_back(any_values(type, count, random));
  return inputs;
}

std::vector<const std::byte*> pointers(const std::vector<Bytes>& inputs, std::size_t offset = 0) {
  std::vector<const std::byte*> result;
  for (const Bytes& input : inputs) result.push_back(input.data() + offset);
  return result;
}

TEST_P(ReduceMany, AgreesWithTheScalarReferenceOnAnyBits) {
  std::mt19937_64 random(1);
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      for (const std::size_t count : kCounts) {
        const std::vector<Bytes> inputs = any_inputs(type, 1 + count % 6, count, random);
        const Bytes expected = reference_reduce_many(inputs, type, reduction);
        std::vector<Misplaced> from;
        std::vector<const std::byte*> sources;
        for (const Bytes& input : inputs) from.emplace_back(input, kOffsets[from.size() % 3]);
        for (Misplaced& source : from) sources.push_back(source.data());
        Misplaced to(Bytes(expected.size()), kOffsets[(count + 1) % 3]);
        reduce_many(to.data(), sources, count, type, reduction);
        ASSERT_EQ(to.values(), expected)
            << core::to_string(type) << ' ' << core::to_string(reduction) << ' ' << count;
        ASSERT_TRUE(to.is_guarded());
        for (std::size_t i = 0; i < from.size(); ++i) ASSERT_EQ(from[i].values(), inputs[i]);
      }
    }
  }
}

TEST_P(ReduceMany, CuttingABufferChangesNoBit) {
  std::mt19937_64 random(2);
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      const std::size_t count = 300;
      const std::size_t size = core::size_of(type);
      const std::vector<Bytes> inputs = any_inputs(type, 3, count, random);
      Bytes whole(count * size);
      Bytes cut(count * size);
      reduce_many(whole.data(), pointers(inputs), count, type, reduction);
      for (std::size_t begin = 0; begin < count; begin += 7) {
        reduce_many(cut.data() + begin * size, pointers(inputs, begin * size),
                    std::min<std::size_t>(7, count - begin), type, reduction);
      }
      ASSERT_EQ(whole, cut) << core::to_string(type) << ' ' << core::to_string(reduction);
    }
  }
}

TEST_P(ReduceMany, ADestinationMayBeAnySource) {
  std::mt19937_64 random(3);
  for (const DataType type : all_data_types()) {
    const std::vector<Bytes> inputs = any_inputs(type, 4, 77, random);
    const Bytes expected = reference_reduce_many(inputs, type, Reduction::kProduct);
    for (std::size_t at = 0; at < inputs.size(); ++at) {
      std::vector<Bytes> used = inputs;
      reduce_many(used[at].data(), pointers(used), 77, type, Reduction::kProduct);
      ASSERT_EQ(used[at], expected) << core::to_string(type) << " over source " << at;
    }
  }
}

// 2048 + 1 + 1 is 2050 in float32; rounded to float16 after each addition it stays 2048.
TEST_P(ReduceMany, RoundsSumsOfHalvesOnceAtTheEnd) {
  const std::uint16_t large = 0x6800;
  const std::uint16_t one = 0x3C00;
  std::uint16_t sum = 0;
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&large),
                                reinterpret_cast<const std::byte*>(&one),
                                reinterpret_cast<const std::byte*>(&one)};
  reduce_many(reinterpret_cast<std::byte*>(&sum), sources, 1, DataType::kFloat16, Reduction::kSum);
  EXPECT_EQ(sum, 0x6801);
}

INSTANTIATE_TEST_SUITE_P(Targets, ReduceMany,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace fasthorovod::ops
