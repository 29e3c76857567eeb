#include "compression/instruction_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace fasthorovod::compression {
namespace {

using testing::HasSubstr;

class InstructionSet : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(use_instruction_set("auto")); }
};

TEST_F(InstructionSet, IsTheBestOneUnlessAnotherIsAskedFor) {
  ASSERT_FALSE(instruction_sets().empty());
  EXPECT_EQ(instruction_set(), instruction_sets().front());
  EXPECT_EQ(instruction_sets().back(), "scalar");
}

TEST_F(InstructionSet, ThatIsForcedIsTheOneThatRuns) {
  for (const std::string_view name : instruction_sets()) {
    ASSERT_TRUE(use_instruction_set(name));
    EXPECT_EQ(instruction_set(), name);
  }
  ASSERT_TRUE(use_instruction_set("auto"));
  EXPECT_EQ(instruction_set(), instruction_sets().front());
}

TEST_F(InstructionSet, ThatTheProcessorLacksIsRefusedWithWhatThereIs) {
  ASSERT_TRUE(use_instruction_set("scalar"));
  const auto status = use_instruction_set("avx1024");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr("\"avx1024\""));
  for (const std::string_view name : instruction_sets()) {
    EXPECT_THAT(status.error().message, HasSubstr(std::string(name)));
  }
  EXPECT_EQ(instruction_set(), "scalar");
}

}  // namespace
}  // namespace fasthorovod::compression
