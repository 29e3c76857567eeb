#include "compression/residual.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "compression/kernels/targets.h"
#include "test/compression/codec_reference.h"
#include "test/compression/misplaced_floats.h"

// After targets.h, which says what there is to choose from.
#include "test/compression/each_target.h"

namespace fasthorovod::compression {
namespace {

using Residual = EachTarget;

std::vector<float> numbers(std::size_t elements, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(elements);
  for (float& value : values) value = normal(random);
  return values;
}

// A product that is not rounded before the addition would differ in a third of the elements.
TEST_P(Residual, IsAddedToTheScaledInput) {
  std::mt19937_64 random(1);
  for (const std::size_t count : kCounts) {
    const std::vector<float> input = numbers(count, random);
    const std::vector<float> residual = numbers(count, random);
    std::vector<float> expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      const float scaled = 0.3F * input[i];
      expected[i] = scaled + residual[i];
    }
    MisplacedFloats values(std::vector<float>(count), kOffsets[count % 3]);
    compensate(input, residual, 0.3F, values.span());
    ASSERT_EQ(bits_of(values.values()), bits_of(expected)) << count;
    ASSERT_TRUE(values.is_guarded()) << count;
  }
}

TEST_P(Residual, ThatIsEmptyCountsAsZeros) {
  std::mt19937_64 random(2);
  for (const std::size_t count : kCounts) {
    const std::vector<float> input = numbers(count, random);
    MisplacedFloats values(std::vector<float>(count, 9.0F), kOffsets[count % 3]);
    compensate(input, {}, 0.5F, values.span());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values.span()[i], 0.5F * input[i]) << count;
    ASSERT_TRUE(values.is_guarded()) << count;
  }
}

TEST_P(Residual, TakesOnlyWhatIsFinite) {
  std::mt19937_64 random(3);
  for (const std::size_t count : kCounts) {
    const std::vector<float> left = any_values(count, 1.0F, random);
    std::vector<float> expected = numbers(count, random);
    MisplacedFloats residual(expected, kOffsets[count % 3]);
    for (std::size_t i = 0; i < count; ++i) {
      if (std::isfinite(left[i])) expected[i] = left[i];
    }
    keep(left, residual.span());
    ASSERT_EQ(bits_of(residual.values()), bits_of(expected)) << count;
    ASSERT_TRUE(residual.is_guarded()) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Residual, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace fasthorovod::compression
