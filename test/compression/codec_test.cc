// One suite for all codecs of the table, on every instruction set that this processor has: bit for
// bit what the reference says, at odd lengths and addresses, and nothing beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "compression/codec_table.h"
#include "compression/kernels/targets.h"
#include "test/compression/codec_reference.h"
#include "test/compression/misplaced_floats.h"

// After targets.h, which says what there is to choose from.
#include "test/compression/each_target.h"

namespace fasthorovod::compression {
namespace {

// Where answers of twobit change their width, and beyond.
constexpr int kRankCounts[] = {1, 2, 7, 8, 127, 128, 300, 32767};
constexpr double kFactors[] = {1.0, 0.5, 1.0 / 3.0, -2.0};
constexpr float kThresholds[] = {0.5F, 1e-3F, 3e38F, 1e-40F};

std::vector<const CodecInfo*> encoding_codecs() {
  std::vector<const CodecInfo*> codecs;
  for (const CodecInfo& info : codec_table()) {
    if (info.codec != nullptr) codecs.push_back(&info);
  }
  return codecs;
}

/// Bytes that a codec must overwrite, at an odd address.
Misplaced unwritten(std::size_t bytes, std::size_t offset) {
  return {Bytes(bytes, std::byte{0xFF}), offset};
}

using Codecs = EachTarget;

TEST_P(Codecs, EncodeAsTheReferenceAndLeaveWhatItLeaves) {
  std::mt19937_64 random(1);
  for (const CodecInfo* info : encoding_codecs()) {
    for (const std::size_t count : kCounts) {
      for (const float threshold : kThresholds) {
        const CodecSetting setting{.threshold = threshold};
        std::vector<float> left = any_values(count, threshold, random);
        MisplacedFloats values(left, kOffsets[count % 3]);
        Misplaced codes = unwritten(info->codec->code_bytes(count), kOffsets[(count + 1) % 3]);
        const Bytes expected = reference_encode(info->id, left, setting);
        info->codec->encode(values.span(), {codes.data(), codes.size}, setting);
        ASSERT_EQ(codes.values(), expected) << info->name << ' ' << count << ' ' << threshold;
        ASSERT_EQ(bits_of(values.values()), bits_of(left)) << info->name << ' ' << count;
        ASSERT_TRUE(codes.is_guarded() && values.is_guarded()) << info->name << ' ' << count;
      }
    }
  }
}

TEST_P(Codecs, AddAnyCodesAsTheReference) {
  std::mt19937_64 random(2);
  for (const CodecInfo* info : encoding_codecs()) {
    for (const std::size_t count : kCounts) {
      const Bytes codes = any_bytes(info->codec->code_bytes(count), random);
      std::vector<float> expected = any_sums(info->id, count, 40, random);
      for (float& sum : expected) sum = std::isnan(sum) ? 1.0F : sum;
      MisplacedFloats sums(expected, kOffsets[count % 3]);
      Misplaced from(codes, kOffsets[(count + 1) % 3]);
      reference_add(info->id, codes, expected);
      info->codec->add({from.data(), from.size}, sums.span());
      ASSERT_EQ(bits_of(sums.values()), bits_of(expected)) << info->name << ' ' << count;
      ASSERT_TRUE(sums.is_guarded()) << info->name << ' ' << count;
      ASSERT_EQ(from.values(), codes);
    }
  }
}

TEST_P(Codecs, EncodeAnswersAsTheReference) {
  std::mt19937_64 random(3);
  for (const CodecInfo* info : encoding_codecs()) {
    for (const std::size_t count : kCounts) {
      for (const int ranks : kRankCounts) {
        const CodecSetting setting{0.5F, ranks, kFactors[(count + random()) % 4]};
        const std::vector<float> sums = any_sums(info->id, count, ranks, random);
        MisplacedFloats from(sums, kOffsets[count % 3]);
        Misplaced answer =
            unwritten(info->codec->answer_bytes(count, ranks), kOffsets[(count + 1) % 3]);
        info->codec->encode_answer(from.span(), {answer.data(), answer.size}, setting);
        ASSERT_EQ(answer.values(), reference_encode_answer(info->id, sums, setting))
            << info->name << ' ' << count << ' ' << ranks;
        ASSERT_TRUE(answer.is_guarded()) << info->name << ' ' << count << ' ' << ranks;
        ASSERT_EQ(bits_of(from.values()), bits_of(sums));
      }
    }
  }
}

TEST_P(Codecs, DecodeAnyAnswersAsTheReference) {
  std::mt19937_64 random(4);
  for (const CodecInfo* info : encoding_codecs()) {
    for (const std::size_t count : kCounts) {
      for (const int ranks : kRankCounts) {
        const CodecSetting setting{0.3F, ranks, kFactors[(count + random()) % 4]};
        const Bytes answer = any_bytes(info->codec->answer_bytes(count, ranks), random);
        Misplaced from(answer, kOffsets[count % 3]);
        MisplacedFloats values(std::vector<float>(count, -7.0F), kOffsets[(count + 1) % 3]);
        info->codec->decode_answer({from.data(), from.size}, values.span(), setting);
        ASSERT_EQ(bits_of(values.values()),
                  bits_of(reference_decode_answer(info->id, answer, count, setting)))
            << info->name << ' ' << count << ' ' << ranks;
        ASSERT_TRUE(values.is_guarded()) << info->name << ' ' << count << ' ' << ranks;
      }
    }
  }
}

TEST_P(Codecs, SpansThatBeginAtGranulesGiveTheBitsOfTheWhole) {
  std::mt19937_64 random(5);
  constexpr std::size_t kCount = 5 * Codec::kGranule + 13;
  const CodecSetting setting{.threshold = 0.5F};
  for (const CodecInfo* info : encoding_codecs()) {
    const Codec& codec = *info->codec;
    std::vector<float> values = any_values(kCount, setting.threshold, random);
    Bytes codes(codec.code_bytes(kCount));
    std::vector<float> again = values;
    Bytes codes_again(codes.size());
    codec.encode(values, codes, setting);
    for (std::size_t begin = 0; begin < kCount; begin += 2 * Codec::kGranule) {
      const std::size_t count = std::min(2 * Codec::kGranule, kCount - begin);
      codec.encode(std::span(again).subspan(begin, count),
                   std::span(codes_again).subspan(codec.code_bytes(begin), codec.code_bytes(count)),
                   setting);
    }
    EXPECT_EQ(codes_again, codes) << info->name;
    EXPECT_EQ(bits_of(again), bits_of(values)) << info->name;
  }
}

/// The answer among so many ranks that all have the same values.
std::vector<float> exchange_of_equals(const CodecInfo& info, const std::vector<float>& values,
                                      const CodecSetting& setting) {
  std::vector<float> left = values;
  std::vector<float> sums(values.size());
  Bytes codes(info.codec->code_bytes(values.size()));
  Bytes answer(info.codec->answer_bytes(values.size(), setting.ranks));
  info.codec->encode(left, codes, setting);
  for (int rank = 0; rank < setting.ranks; ++rank) info.codec->add(codes, sums);
  std::vector<float> results(values.size());
  info.codec->encode_answer(sums, answer, setting);
  info.codec->decode_answer(answer, results, setting);
  return results;
}

TEST_P(Codecs, LargestSumsOfManyRanksComeBackExactly) {
  const std::vector<float> values{0.5F, -0.5F, 0.0F, 0.5F, -0.5F};
  for (const CodecInfo* info : encoding_codecs()) {
    for (const int ranks : kRankCounts) {
      const CodecSetting mean{0.5F, ranks, 1.0 / ranks};
      const std::vector<float> means = exchange_of_equals(*info, values, mean);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(means[i], values[i], 1e-4) << info->name << ' ' << ranks;
      }
      if (ranks > 2048) continue;  // a 16-bit format holds no larger whole numbers
      const CodecSetting sum{0.5F, ranks, 2.0};
      const std::vector<float> sums = exchange_of_equals(*info, values, sum);
      const auto count = static_cast<float>(ranks);
      const float coarse = info->id == core::CodecId::kBf16 ? count / 256.0F : 0.0F;
      ASSERT_NEAR(sums[0], count, coarse) << info->name << ' ' << ranks;
      ASSERT_NEAR(sums[1], -count, coarse) << info->name << ' ' << ranks;
      ASSERT_EQ(sums[2], 0.0F) << info->name << ' ' << ranks;
    }
  }
}

TEST_P(Codecs, WhatIsNotFiniteIsSoInTheAnswerThereAndNowhereElse) {
  constexpr std::size_t kCount = 150;
  const float specials[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  for (const CodecInfo* info : encoding_codecs()) {
    for (std::size_t at = 0; at < kCount; ++at) {
      std::vector<float> values(kCount, 0.75F);
      values[at] = specials[at % 3];
      const int ranks = kRankCounts[at % 6];
      const std::vector<float> results =
          exchange_of_equals(*info, values, {0.5F, ranks, 1.0 / ranks});
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(std::isfinite(results[i]), i != at) << info->name << ' ' << at << ' ' << i;
      }
    }
  }
}

TEST_P(Codecs, AnAnswerIsTheSameOnWhateverProcessorItIsDecoded) {
  std::mt19937_64 random(6);
  for (const CodecInfo* info : encoding_codecs()) {
    const CodecSetting setting{0.7F, 9, 1.0 / 9};
    const Bytes answer = any_bytes(info->codec->answer_bytes(1000, setting.ranks), random);
    std::vector<float> values(1000);
    std::vector<float> first(1000);
    info->codec->decode_answer(answer, values, setting);
    use(hwy::SupportedAndGeneratedTargets().front());
    info->codec->decode_answer(answer, first, setting);
    use(GetParam());
    EXPECT_EQ(bits_of(values), bits_of(first)) << info->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Codecs, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

TEST(Codec, BytesFollowFromTheNumberOfElementsAndRanks) {
  const Codec& twobit = *codec_info(core::CodecId::kTwobit).codec;
  EXPECT_EQ(twobit.code_bytes(0), 0U);
  EXPECT_EQ(twobit.code_bytes(1), 4U);
  EXPECT_EQ(twobit.code_bytes(16), 4U);
  EXPECT_EQ(twobit.code_bytes(17), 8U);
  EXPECT_EQ(twobit.answer_bytes(0, 2), 0U);
  EXPECT_EQ(twobit.answer_bytes(5, 7), 3U);
  EXPECT_EQ(twobit.answer_bytes(5, 8), 5U);
  EXPECT_EQ(twobit.answer_bytes(5, 127), 5U);
  EXPECT_EQ(twobit.answer_bytes(5, 128), 10U);
  EXPECT_EQ(twobit.answer_bytes(5, 32767), 10U);
  for (const core::CodecId id : {core::CodecId::kFp16, core::CodecId::kBf16}) {
    EXPECT_EQ(codec_info(id).codec->code_bytes(5), 10U);
    EXPECT_EQ(codec_info(id).codec->answer_bytes(5, 300), 10U);
  }
}

// Spans that begin at granules must find their codes and answers at whole bytes.
TEST(Codec, AGranuleFillsWholeBytes) {
  for (const CodecInfo* info : encoding_codecs()) {
    for (const int ranks : kRankCounts) {
      const std::size_t granule = Codec::kGranule;
      EXPECT_EQ(info->codec->code_bytes(granule) * 3, info->codec->code_bytes(granule * 3));
      EXPECT_EQ(info->codec->answer_bytes(granule, ranks) * 3,
                info->codec->answer_bytes(granule * 3, ranks));
    }
  }
}

}  // namespace
}  // namespace fasthorovod::compression
