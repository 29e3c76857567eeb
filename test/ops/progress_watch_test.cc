#include "ops/progress_watch.h"

#include <gtest/gtest.h>

namespace fasthorovod::ops {
namespace {

using std::chrono::seconds;

constexpr core::TimePoint kStart{};

TEST(ProgressWatch, NoticesWhenNothingMovesForTheLimit) {
  ProgressWatch watch(seconds(4));
  EXPECT_FALSE(watch.stalled(true, 1, kStart));
  EXPECT_FALSE(watch.stalled(true, 1, kStart + seconds(3)));
  EXPECT_TRUE(watch.stalled(true, 1, kStart + seconds(4)));
}

TEST(ProgressWatch, StartsAnewWithEveryMove) {
  ProgressWatch watch(seconds(4));
  EXPECT_FALSE(watch.stalled(true, 1, kStart));
  EXPECT_FALSE(watch.stalled(true, 2, kStart + seconds(3)));
  EXPECT_FALSE(watch.stalled(true, 2, kStart + seconds(6)));
  EXPECT_TRUE(watch.stalled(true, 2, kStart + seconds(7)));
}

TEST(ProgressWatch, IsCalmWhileNothingIsPending) {
  ProgressWatch watch(seconds(4));
  EXPECT_FALSE(watch.stalled(true, 1, kStart));
  EXPECT_FALSE(watch.stalled(false, 1, kStart + seconds(10)));
  EXPECT_FALSE(watch.stalled(true, 1, kStart + seconds(11)));
  EXPECT_TRUE(watch.stalled(true, 1, kStart + seconds(15)));
}

TEST(ProgressWatch, NeverNoticesWithoutALimit) {
  ProgressWatch watch(seconds(0));
  EXPECT_FALSE(watch.enabled());
  EXPECT_FALSE(watch.stalled(true, 1, kStart));
  EXPECT_FALSE(watch.stalled(true, 1, kStart + seconds(1000)));
}

}  // namespace
}  // namespace fasthorovod::ops
