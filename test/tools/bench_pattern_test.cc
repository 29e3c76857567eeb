#include <gtest/gtest.h>

#include <cstring>

#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {
namespace {

using core::DataType;
using core::Reduction;

template <typename T>
std::vector<T> values(const Pattern& pattern) {
  std::vector<T> result(pattern.size() / sizeof(T));
  std::memcpy(result.data(), pattern.data(), pattern.size());
  return result;
}

TEST(BenchPattern, SumsWhatTheRanksContribute) {
  std::vector<float> sum(kPatternPeriod);
  for (int rank = 0; rank < 5; ++rank) {
    const auto own = values<float>(contribution(DataType::kFloat32, Reduction::kSum, rank));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  }
  EXPECT_EQ(values<float>(expected_result(DataType::kFloat32, Reduction::kSum, 5)), sum);
}

TEST(BenchPattern, DividesAverages) {
  const auto sum = values<double>(expected_result(DataType::kFloat64, Reduction::kSum, 3));
  const auto average = values<double>(expected_result(DataType::kFloat64, Reduction::kAverage, 3));
  const auto whole = values<int>(expected_result(DataType::kInt32, Reduction::kAverage, 3));
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(average[i], sum[i] * (1.0 / 3));
    EXPECT_EQ(whole[i], static_cast<int>(sum[i]) / 3);
  }
}

TEST(BenchPattern, RoundsBfloat16ToTheNearest) {
  // 6/7, 1 and 8/7, one after the other, in steps of 2^-8 below 1 and of 2^-7 from there.
  const auto bits =
      values<std::uint16_t>(expected_result(DataType::kBfloat16, Reduction::kAverage, 7));
  EXPECT_EQ(bits[0], 0x3F5B);
  EXPECT_EQ(bits[1], 0x3F80);
  EXPECT_EQ(bits[2], 0x3F92);
}

TEST(BenchPattern, DependsOnTheRankInEveryTypeAndReduction) {
  for (int number = 0; number < core::kDataTypeCount; ++number) {
    const auto type = *core::data_type_from_wire(static_cast<std::uint8_t>(number));
    for (const auto reduction : {Reduction::kSum, Reduction::kProduct, Reduction::kMin,
                                 Reduction::kMax, Reduction::kAverage}) {
      EXPECT_NE(contribution(type, reduction, 0), contribution(type, reduction, 1));
      // Who forgets a rank, or to reduce at all, is found out.
      EXPECT_NE(expected_result(type, reduction, 2), contribution(type, reduction, 0));
      EXPECT_NE(expected_result(type, reduction, 2), contribution(type, reduction, 1));
    }
  }
}

TEST(BenchPattern, CountsEveryWrongElement) {
  const Pattern pattern = contribution(DataType::kInt32, Reduction::kSum, 0);
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{10'000}}) {
    std::vector<std::byte> buffer(count * sizeof(int));
    fill(buffer, pattern);
    EXPECT_EQ(count_wrong(buffer, pattern), 0U);
    buffer.front() ^= std::byte{1};
    buffer.back() ^= std::byte{1};
    EXPECT_EQ(count_wrong(buffer, pattern), count == 1 ? 1U : 2U);
  }
}

TEST(BenchPattern, RefusesMoreRanksThanCanBeChecked) {
  EXPECT_TRUE(check_exact(DataType::kBfloat16, Reduction::kSum, 128));
  EXPECT_FALSE(check_exact(DataType::kBfloat16, Reduction::kSum, 129));
  EXPECT_TRUE(check_exact(DataType::kBfloat16, Reduction::kMax, 1000));
  EXPECT_TRUE(check_exact(DataType::kInt8, Reduction::kSum, 1000));
  EXPECT_FALSE(check_exact(DataType::kFloat16, Reduction::kProduct, 1000));
}

}  // namespace
}  // namespace fasthorovod::tools
