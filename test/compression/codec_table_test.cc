#include "compression/codec_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace fasthorovod::compression {
namespace {

using core::CodecChoice;
using core::CodecId;
using core::ErrorCode;
using testing::HasSubstr;

TEST(CodecTable, HasOneRowForEveryId) {
  ASSERT_EQ(codec_table().size(), std::size(core::kAllCodecs));
  for (std::size_t i = 0; i < codec_table().size(); ++i) {
    const CodecInfo& info = codec_table()[i];
    EXPECT_EQ(info.id, core::kAllCodecs[i]);
    EXPECT_EQ(static_cast<std::size_t>(info.id), i);
    EXPECT_EQ(info.name, core::to_string(info.id));
    EXPECT_EQ(&codec_info(info.id), &info);
    EXPECT_FALSE(info.summary.empty());
    EXPECT_GT(info.most_ranks, 1);
    EXPECT_EQ(info.codec == nullptr, info.id == CodecId::kNone);
    if (info.codec == nullptr) continue;
    EXPECT_EQ(info.codec->id(), info.id);
  }
}

TEST(CodecTable, OnlyTwobitKeepsAResidualAndNeedsAThreshold) {
  for (const CodecInfo& info : codec_table()) {
    EXPECT_EQ(info.needs_threshold, info.id == CodecId::kTwobit);
    if (info.codec == nullptr) continue;
    EXPECT_EQ(info.codec->keeps_residual(), info.id == CodecId::kTwobit);
  }
  EXPECT_EQ(codec_info(CodecId::kTwobit).most_ranks, 32767);
}

TEST(CodecTable, ReadsWhatUsersWrite) {
  for (const CodecInfo& info : codec_table()) {
    if (info.needs_threshold) continue;
    const auto choice = parse_codec(info.name);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(*choice, CodecChoice{.id = info.id});
  }
  for (const auto& [text, threshold] :
       {std::pair{"twobit:0.5", 0.5F}, std::pair{"twobit:1e-3", 1e-3F},
        std::pair{"twobit:2", 2.0F}}) {
    const auto choice = parse_codec(text);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(*choice, (CodecChoice{CodecId::kTwobit, threshold})) << text;
  }
}

TEST(CodecTable, AnErrorAboutANameShowsTheTableAndTheNearestOne) {
  const auto choice = parse_codec("fp17");
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(choice.error().message, HasSubstr("\"fp17\""));
  EXPECT_THAT(choice.error().message, HasSubstr("did you mean fp16?"));
  for (const CodecInfo& info : codec_table()) {
    EXPECT_THAT(choice.error().message, HasSubstr(std::string(info.summary)));
  }
  const auto strange = parse_codec("");
  ASSERT_FALSE(strange);
  EXPECT_THAT(strange.error().message, HasSubstr("twobit:THRESHOLD"));
}

TEST(CodecTable, FindsCodecsByName) {
  for (const CodecInfo& info : codec_table()) {
    const auto id = find_codec(info.name);
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(*id, info.id);
  }
  EXPECT_FALSE(find_codec("twobit:0.5"));
}

TEST(CodecTable, AnErrorAboutAThresholdSaysWhatItMayBe) {
  for (const char* text :
       {"twobit", "twobit:", "twobit:x", "twobit:0.5x", "twobit:0", "twobit:-1", "twobit:nan",
        "twobit:inf", "twobit:1e-60", "twobit:1e60", "twobit: 1"}) {
    const auto choice = parse_codec(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_EQ(choice.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(choice.error().message, HasSubstr("a positive, finite number")) << text;
  }
  const auto choice = parse_codec("bf16:0.5");
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().message, HasSubstr("bf16 takes no threshold"));
}

TEST(CodecTable, ChecksThresholds) {
  EXPECT_TRUE(check({}));
  EXPECT_TRUE(check({CodecId::kBf16, 0.0F}));
  EXPECT_TRUE(check({CodecId::kTwobit, std::numeric_limits<float>::denorm_min()}));
  for (const float threshold : {0.0F, -0.5F, std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(check({CodecId::kTwobit, threshold})) << threshold;
  }
  EXPECT_FALSE(check({CodecId::kFp16, 0.5F}));
  EXPECT_FALSE(check({CodecId::kNone, std::numeric_limits<float>::quiet_NaN()}));
}

}  // namespace
}  // namespace fasthorovod::compression
