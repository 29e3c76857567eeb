#include "ops/lane_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

TEST(LaneWatch, TakesWaitsForShortUntilTheyWereLong) {
  LaneWatch watch(1);
  EXPECT_TRUE(watch.waits_are_short());
  for (int operation = 0; operation < 20; ++operation) {
    while (watch.wait()) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    watch.restart();
  }
  EXPECT_FALSE(watch.waits_are_short());
}

}  // namespace
}  // namespace fasthorovod::ops
