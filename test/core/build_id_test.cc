#include "core/build_id.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

TEST(BuildId, IsSixteenHexadecimalDigits) {
  EXPECT_EQ(build_id().size(), 16U);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

TEST(BuildId, VersionHasThreeNumbers) {
  EXPECT_EQ(version().find_first_not_of("0123456789."), std::string_view::npos);
  EXPECT_FALSE(version().empty());
}

}  // namespace
}  // namespace fasthorovod::core
