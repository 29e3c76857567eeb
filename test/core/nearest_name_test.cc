#include "core/nearest_name.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

TEST(NearestName, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("flows", "flows"), 0u);
}

TEST(NearestName, FindsTheClosestOrNothing) {
  EXPECT_EQ(nearest_name("FLOW", {"FLOWS", "FLOW_RATE"}), "FLOWS");
  EXPECT_EQ(nearest_name("FLOWRATE", {"FLOWS", "FLOW_RATE"}), "FLOW_RATE");
  EXPECT_EQ(nearest_name("SOMETHING", {"FLOWS", "FLOW_RATE"}), "");
  EXPECT_EQ(nearest_name("X", {}), "");
}

}  // namespace
}  // namespace fasthorovod::core
