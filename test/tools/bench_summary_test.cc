#include <gtest/gtest.h>

#include "tools/fasthorovod-bench/summary.h"

namespace fasthorovod::tools {
namespace {

TEST(BenchSummary, TakesTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(BenchSummary, IsTheMedianOfTheRepetitionsMedians) {
  const Repetitions repetitions{
      {{1, 0}, {2, 0}, {90, 1}}, {{5, 0}, {5, 2}, {5, 0}}, {{9, 0}, {9, 0}, {9, 0}}};
  const Summary summary = summarize(repetitions);
  EXPECT_EQ(summary.median_us, 5);
  EXPECT_EQ(summary.least_us, 1);
  EXPECT_EQ(summary.wrong, 3U);
}

TEST(BenchSummary, ComparesRepetitionWithRepetition) {
  // The second repetition was slow for both.
  const Repetitions ours{{{10, 0}}, {{100, 0}}, {{12, 0}}};
  const Repetitions theirs{{{20, 0}}, {{200, 0}}, {{6, 0}}};
  EXPECT_EQ(ratio(ours, theirs), 0.5);
}

}  // namespace
}  // namespace fasthorovod::tools
