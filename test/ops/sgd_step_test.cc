#include "ops/compensation/sgd_step.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "compression/kernels/targets.h"

// After targets.h, which says what there is to choose from.
#include "test/compression/each_target.h"

namespace fasthorovod::ops {
namespace {

using compression::EachTarget;
using compression::kCounts;
using Floats = std::vector<float>;
using Words = std::vector<std::uint32_t>;

// Rounds here and now: nothing is fused with what follows.
float rounded(float value) {
  volatile float memory = value;
  return memory;
}

float one_nan(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7FC00000U) : value; }

struct Scalar {
  float weights;
  float velocity;
};

Scalar reference(Scalar old, float gradient, const SgdSettings& s) {
  const float decayed = rounded(gradient + rounded(s.weight_decay * old.weights));
  const float velocity = rounded(rounded(s.momentum * old.velocity) + decayed);
  return {one_nan(rounded(old.weights - rounded(s.rate * velocity))), one_nan(velocity)};
}

Words bits(const Floats& values) {
  Words words;
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return words;
}

// Mostly ordinary numbers, so that sums round; now and then any bits at all.
Floats some_values(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> ordinary;
  Floats values(count);
  for (float& value : values) {
    value = random() % 8 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                              : ordinary(random);
  }
  return values;
}

constexpr SgdSettings kSettings[] = {
    {0.1F, 0.9F, 1e-4F}, {0.1F, 0.0F, 0.0F}, {0.0F, 0.9F, 0.0F}, {3.0F, 0.95F, 0.3F}};

struct Buffers {
  Buffers(std::size_t count, std::mt19937& random)
      : weights(some_values(count + 1, random)),
        velocity(some_values(count + 1, random)),
        gradient(some_values(count + 1, random)) {}
  // From the second element on: aligned to nothing but a float.
  static std::span<float> of(Floats& values) { return std::span(values).subspan(1); }

  Floats weights;
  Floats velocity;
  Floats gradient;
};

using SgdStep = EachTarget;

TEST_P(SgdStep, AgreesWithTheScalarReferenceToTheBit) {
  std::mt19937 random(1);
  for (const SgdSettings& settings : kSettings) {
    for (const std::size_t count : kCounts) {
      Buffers buffers(count, random);
      Floats weights = buffers.weights;
      Floats velocity = buffers.velocity;
      for (std::size_t i = 1; i <= count; ++i) {
        const Scalar next = reference({weights[i], velocity[i]}, buffers.gradient[i], settings);
        weights[i] = next.weights;
        velocity[i] = next.velocity;
      }
      sgd_step(Buffers::of(buffers.weights), Buffers::of(buffers.velocity),
               Buffers::of(buffers.gradient), settings);
      ASSERT_EQ(bits(buffers.weights), bits(weights)) << count;
      ASSERT_EQ(bits(buffers.velocity), bits(velocity)) << count;
    }
  }
}

TEST_P(SgdStep, PreviewShowsWhereAStepWouldLead) {
  std::mt19937 random(2);
  for (const SgdSettings& settings : kSettings) {
    for (const std::size_t count : kCounts) {
      Buffers buffers(count, random);
      const Buffers before = buffers;
      Floats shown(count + 2, 5.0F);
      sgd_preview(std::span(shown).subspan(1, count), Buffers::of(buffers.weights),
                  Buffers::of(buffers.velocity), Buffers::of(buffers.gradient), settings);
      ASSERT_EQ(bits(buffers.weights), bits(before.weights));
      ASSERT_EQ(bits(buffers.velocity), bits(before.velocity));
      if (settings.rate != 0) {
        sgd_step(Buffers::of(buffers.weights), Buffers::of(buffers.velocity),
                 Buffers::of(buffers.gradient), settings);
      }
      ASSERT_EQ(shown.front(), 5.0F);
      ASSERT_EQ(shown.back(), 5.0F);
      for (std::size_t i = 1; i <= count; ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(shown[i]),
                  std::bit_cast<std::uint32_t>(buffers.weights[i]))
            << i << " of " << count;
      }
    }
  }
}

TEST_P(SgdStep, CuttingABufferChangesNoBit) {
  std::mt19937 random(3);
  Buffers whole(300, random);
  Buffers cut = whole;
  sgd_step(whole.weights, whole.velocity, whole.gradient, kSettings[0]);
  for (std::size_t begin = 0; begin < 301; begin += 7) {
    const std::size_t count = std::min<std::size_t>(7, 301 - begin);
    sgd_step(std::span(cut.weights).subspan(begin, count),
             std::span(cut.velocity).subspan(begin, count),
             std::span(cut.gradient).subspan(begin, count), kSettings[0]);
  }
  EXPECT_EQ(bits(whole.weights), bits(cut.weights));
  EXPECT_EQ(bits(whole.velocity), bits(cut.velocity));
}

TEST_P(SgdStep, APreviewAtRateZeroKeepsEveryBit) {
  const Floats weights = {1.5F, -0.0F, std::bit_cast<float>(0xFFC01234U), 0.0F};
  const Floats velocity(4, 1.0F);
  const Floats gradient(4, std::numeric_limits<float>::infinity());
  Floats shown(4);
  sgd_preview(shown, weights, velocity, gradient, {0.0F, 0.9F, 1e-4F});
  EXPECT_EQ(bits(shown), bits(weights));
}

INSTANTIATE_TEST_SUITE_P(Targets, SgdStep, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace fasthorovod::ops
