// What makes `twobit` itself: the bytes of MXNet, and that nothing is lost between steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "compression/codec_table.h"
#include "compression/kernels/targets.h"
#include "compression/residual.h"
#include "test/compression/codec_reference.h"

// After targets.h, which says what there is to choose from.
#include "test/compression/each_target.h"

namespace fasthorovod::compression {
namespace {

const Codec& twobit() { return *codec_info(core::CodecId::kTwobit).codec; }

using Twobit = EachTarget;

TEST_P(Twobit, WritesTheBytesOfMxnet) {
  std::vector<float> values{0.6F, -0.2F, -0.7F, 0.1F};
  Bytes codes(4, std::byte{0xFF});
  twobit().encode(values, codes, {.threshold = 0.5F});
  EXPECT_EQ(codes, (Bytes{std::byte{0xC8}, std::byte{0}, std::byte{0}, std::byte{0}}));
  EXPECT_EQ(values, (std::vector<float>{0.6F - 0.5F, -0.2F, -0.7F + 0.5F, 0.1F}));
}

// Elements 16 to 19 are the first byte of the second word; the pattern fills vectors too.
TEST_P(Twobit, KeepsTheOrderOfMxnetInEveryWord) {
  std::vector<float> values;
  for (int i = 0; i < 40; ++i) {
    values.insert(values.end(), {0.6F, -0.2F, -0.7F, 0.1F});
  }
  values[16] = -0.6F;
  Bytes codes(twobit().code_bytes(values.size()));
  twobit().encode(values, codes, {.threshold = 0.5F});
  for (std::size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(codes[i], i == 4 ? std::byte{0x88} : std::byte{0xC8}) << i;
  }
}

TEST_P(Twobit, SaysOneThresholdAStepHoweverLargeTheValue) {
  std::vector<float> values(100, 1e30F);
  Bytes codes(twobit().code_bytes(values.size()));
  twobit().encode(values, codes, {.threshold = 0.5F});
  EXPECT_EQ(codes[0], std::byte{0xFF});
  EXPECT_EQ(values, std::vector<float>(100, 1e30F));
}

TEST_P(Twobit, AtTheThresholdNothingIsLeft) {
  std::vector<float> values(100, -0.25F);
  Bytes codes(twobit().code_bytes(values.size()));
  twobit().encode(values, codes, {.threshold = 0.25F});
  EXPECT_EQ(codes[0], std::byte{0xAA});
  EXPECT_EQ(values, std::vector<float>(100, 0.0F));
}

/// One rank's part of a training: what it has been given, and what has come back.
struct Trained {
  explicit Trained(std::size_t elements)
      : given(elements), came_back(elements), residual(elements) {}
  std::vector<double> given;
  std::vector<double> came_back;
  std::vector<float> residual;
};

void step(Trained& rank, const std::vector<float>& gradient, const CodecSetting& setting) {
  std::vector<float> values(gradient.size());
  std::vector<float> sums(gradient.size());
  std::vector<float> result(gradient.size());
  Bytes codes(twobit().code_bytes(gradient.size()));
  Bytes answer(twobit().answer_bytes(gradient.size(), setting.ranks));
  compensate(gradient, rank.residual, 1.0F, values);
  twobit().encode(values, codes, setting);
  keep(values, rank.residual);
  twobit().add(codes, sums);
  twobit().encode_answer(sums, answer, setting);
  twobit().decode_answer(answer, result, setting);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    rank.given[i] += gradient[i];
    rank.came_back[i] += result[i];
  }
}

// Multiples of 1/64 below 64 are exact, so not a bit may be missing.
TEST_P(Twobit, WhatDoesNotComeBackIsInTheResidual) {
  constexpr std::size_t kElements = 203;
  std::mt19937_64 random(1);
  Trained rank(kElements);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> gradient(kElements);
    for (float& value : gradient) value = (static_cast<float>(random() % 129) - 32.0F) / 64.0F;
    step(rank, gradient, {.threshold = 0.75F});
  }
  for (std::size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(rank.came_back[i] + rank.residual[i], rank.given[i]) << i;
    ASSERT_NE(rank.came_back[i], 0.0) << "the test says nothing about " << i;
  }
}

TEST_P(Twobit, AnOverflowIsSeenOnceAndLeavesTheResidualAsItWas) {
  constexpr std::size_t kElements = 70;
  for (const float special :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < kElements; ++at) {
      Trained rank(kElements);
      std::vector<float> gradient(kElements, 0.125F);
      step(rank, gradient, {.threshold = 0.5F});
      gradient[at] = special;
      step(rank, gradient, {.threshold = 0.5F});
      EXPECT_TRUE(std::isnan(rank.came_back[at])) << at;
      EXPECT_EQ(rank.residual[at], 0.125F) << at;
      EXPECT_EQ(std::ranges::count(rank.residual, 0.25F), kElements - 1) << at;
      EXPECT_EQ(std::ranges::count(rank.came_back, 0.0), kElements - 1) << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Twobit, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace fasthorovod::compression
