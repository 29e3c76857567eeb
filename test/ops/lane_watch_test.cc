#include "ops/lane_watch.h"

#include <gtest/gtest.h>

namespace fasthorovod::ops {
namespace {

// How long it takes is the machine's business.
TEST(LaneWatch, StaysAwakeAtFirstAndSleepsInTheEnd) {
  for (const std::size_t ranks : {std::size_t{1}, std::size_t{1000}}) {
    LaneWatch watch(ranks);
    EXPECT_TRUE(watch.wait());
    for (int operation = 0; operation < 30; ++operation) {
      while (watch.wait()) {
      }
      EXPECT_FALSE(watch.wait()) << "nothing has happened";
      watch.restart();
      watch.begin();
    }
  }
}

}  // namespace
}  // namespace fasthorovod::ops
