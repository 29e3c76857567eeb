#include "ops/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "compression/kernels/targets.h"
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

using Reduce = compression::EachTarget;

TEST_P(Reduce, AgreesWithTheScalarReferenceOnAnyBits) {
  std::mt19937_64 random(1);
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      for (const std::size_t count : kCounts) {
        Bytes expected = any_values(type, count, random);
        const Bytes values = any_values(type, count, random);
        Misplaced into(expected, kOffsets[count % 3]);
        Misplaced from(values, kOffsets[(count + 1) % 3]);
        reference_reduce(expected, values, type, reduction);
        reduce_into(into.data(), from.data(), count, type, reduction);
        ASSERT_EQ(into.values(), expected)
            << core::to_string(type) << ' ' << core::to_string(reduction) << ' ' << count;
        ASSERT_TRUE(into.is_guarded());
        ASSERT_EQ(from.values(), values);
      }
    }
  }
}

TEST_P(Reduce, CuttingABufferChangesNoBit) {
  std::mt19937_64 random(2);
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      const std::size_t count = 300;
      const std::size_t size = core::size_of(type);
      Bytes whole = any_values(type, count, random);
      Bytes cut = whole;
      const Bytes values = any_values(type, count, random);
      reduce_into(whole.data(), values.data(), count, type, reduction);
      for (std::size_t begin = 0; begin < count; begin += 7) {
        reduce_into(cut.data() + begin * size, values.data() + begin * size,
                    std::min<std::size_t>(7, count - begin), type, reduction);
      }
      ASSERT_EQ(whole, cut) << core::to_string(type) << ' ' << core::to_string(reduction);
    }
  }
}

TEST_P(Reduce, EveryHalfSurvivesAProductWithOne) {
  for (const auto& [type, one] :
       {std::pair{DataType::kFloat16, 0x3C00}, {DataType::kBfloat16, 0x3F80}}) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    Bytes into(all.size() * 2);
    std::memcpy(into.data(), all.data(), into.size());
    std::fill(all.begin(), all.end(), static_cast<std::uint16_t>(one));
    Bytes ones(into.size());
    std::memcpy(ones.data(), all.data(), ones.size());
    Bytes expected = into;
    reference_reduce(expected, ones, type, Reduction::kProduct);
    reduce_into(into.data(), ones.data(), all.size(), type, Reduction::kProduct);
    EXPECT_EQ(into, expected) << core::to_string(type);
  }
}

TEST_P(Reduce, HalvesAreRoundedOnceToNearestEven) {
  std::mt19937_64 random(3);
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct}) {
      Bytes into = any_values(type, 200'000, random);
      const Bytes values = any_values(type, 200'000, random);
      Bytes expected = into;
      reference_reduce(expected, values, type, reduction);
      reduce_into(into.data(), values.data(), 200'000, type, reduction);
      EXPECT_EQ(into, expected) << core::to_string(type) << ' ' << core::to_string(reduction);
    }
  }
}

TEST_P(Reduce, ScalingAgreesWithTheScalarReference) {
  std::mt19937_64 random(4);
  for (const DataType type : all_data_types()) {
    for (const double factor : {1.0, 0.5, 1.0 / 3, 1.0 / 49, 2.5, -1.0, 0.0, 1e300, 1e-300, -0.1}) {
      for (const std::size_t count : kCounts) {
        const Bytes values = any_values(type, count, random);
        Misplaced from(values, kOffsets[count % 3]);
        Misplaced to(Bytes(values.size()), kOffsets[(count + 2) % 3]);
        copy_scaled(to.data(), from.data(), count, type, factor);
        ASSERT_EQ(to.values(), reference_scale(values, type, factor))
            << core::to_string(type) << ' ' << factor << ' ' << count;
        copy_scaled(from.data(), from.data(), count, type, factor);
        ASSERT_EQ(from.values(), to.values());
        ASSERT_TRUE(to.is_guarded());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Reduce, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

TEST(CopyScaled, AverageOfEqualIntegersIsExact) {
  for (std::int32_t ranks = 2; ranks < 2000; ++ranks) {
    std::int32_t sum = 7 * ranks;
    copy_scaled(reinterpret_cast<std::byte*>(&sum), reinterpret_cast<const std::byte*>(&sum), 1,
                DataType::kInt32, 1.0 / ranks);
    ASSERT_EQ(sum, 7) << ranks;
  }
}

TEST(CopyScaled, LargeIntegersStayInsideTheirRange) {
  std::int64_t large = std::numeric_limits<std::int64_t>::max();
  copy_scaled(reinterpret_cast<std::byte*>(&large), reinterpret_cast<const std::byte*>(&large), 1,
              DataType::kInt64, 3.0);
  EXPECT_EQ(large, std::numeric_limits<std::int64_t>::max());
}

TEST(CopyScaled, AFactorOfOneKeepsEveryBitOfANan) {
  const std::uint32_t from = 0xFFC01234U;
  std::uint32_t to = 0;
  copy_scaled(reinterpret_cast<std::byte*>(&to), reinterpret_cast<const std::byte*>(&from), 1,
              DataType::kFloat32, 1.0);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace fasthorovod::ops
