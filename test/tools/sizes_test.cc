#include "tools/fasthorovod-bench/sizes.h"

#include <gtest/gtest.h>

namespace fasthorovod::tools {
namespace {

TEST(Sizes, AreReadWithAndWithoutUnits) {
  EXPECT_EQ(*parse_size("0"), 0U);
  EXPECT_EQ(*parse_size("4096"), 4096U);
  EXPECT_EQ(*parse_size("4K"), 4096U);
  EXPECT_EQ(*parse_size("1.5M"), 3U << 19);
  EXPECT_EQ(*parse_size("1024G"), 1ull << 40);
}

TEST(Sizes, RefuseWhatIsNoWholeNumberOfBytes) {
  for (const char* text : {"", "K", "4k", "4KB", "-1", "1e99", "nan", "0.3", "1025G", "4 K"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_NE(size.error().message.find(text), std::string::npos);
  }
}

TEST(Sizes, AreWrittenInTheLargestUnitThatDividesThem) {
  EXPECT_EQ(format_size(1ull << 30), "1G");
  EXPECT_EQ(format_size(3ull << 19), "1536K");
  EXPECT_EQ(format_size(1000), "1000");
}

TEST(Sizes, StepByAFactor) {
  EXPECT_EQ(*size_steps(4, 64, 4), (std::vector<std::uint64_t>{4, 16, 64}));
  EXPECT_EQ(*size_steps(4, 63, 4), (std::vector<std::uint64_t>{4, 16}));
  EXPECT_FALSE(size_steps(4, 64, 1));
  EXPECT_FALSE(size_steps(64, 4, 2));
  EXPECT_FALSE(size_steps(0, 4, 2));
}

TEST(Sizes, EndWhereTheNextStepWouldNotFitIn64Bits) {
  EXPECT_EQ(*size_steps(2, 64, 1ull << 63), (std::vector<std::uint64_t>{2}));
}

TEST(Sizes, StepByAnIncrement) {
  EXPECT_EQ(*size_increments(4, 12, 4), (std::vector<std::uint64_t>{4, 8, 12}));
  EXPECT_EQ(*size_increments(4, 11, 4), (std::vector<std::uint64_t>{4, 8}));
  EXPECT_EQ(*size_increments(4, 11, ~0ull), (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(size_increments(1, 100'000, 1)->size(), 100'000U);
  EXPECT_FALSE(size_increments(1, 100'001, 1));
  EXPECT_FALSE(size_increments(4, 64, 0));
  EXPECT_FALSE(size_increments(64, 4, 4));
  EXPECT_FALSE(size_increments(0, 4, 4));
}

}  // namespace
}  // namespace fasthorovod::tools
