#include "core/processor_list.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

using Numbers = std::vector<int>;

TEST(ProcessorList, IsReadAsTheSystemWritesIt) {
  EXPECT_EQ(parse_processor_list("3"), (Numbers{3}));
  EXPECT_EQ(parse_processor_list("0-3,8"), (Numbers{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_processor_list("9,4-5"), (Numbers{9, 4, 5})) << "the order is a preference";
  EXPECT_EQ(parse_processor_list("1023"), (Numbers{1023}));
}

TEST(ProcessorList, RefusesWhatIsNone) {
  for (const char* text : {"", ",", "1,", "1,,2", "a", "-1", "1-", "3-1", "1-2-3", "1 2", "0x1",
                           "1024", "0-4294967296", "4,4", "1-3,2", "auto,1"}) {
    EXPECT_EQ(parse_processor_list(text), std::nullopt) << text;
  }
}

TEST(ProcessorList, IsWrittenTheSameWay) {
  EXPECT_EQ(to_processor_list(Numbers{}), "");
  EXPECT_EQ(to_processor_list(Numbers{5}), "5");
  EXPECT_EQ(to_processor_list(Numbers{0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(to_processor_list(Numbers{9, 4, 5}), "9,4-5");
}

}  // namespace
}  // namespace fasthorovod::core
