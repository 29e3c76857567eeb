#include "transport/flow_rate.h"

#include <gtest/gtest.h>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMega = 1'000'000;

struct Drained {
  FlowRate flow;
  core::TimePoint now{1s};
  std::uint64_t drained = 0;

  Drained() { flow.give(now, 0); }

  // Bytes are always waiting; `rate` of them are acknowledged each second.
  void drain(std::uint64_t rate, int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      now += 1ms;
      drained += rate / 1000;
      flow.observe(now, drained + kMega, kMega);
    }
  }
};

TEST(FlowRate, IsUnknownAtFirstAndAfterShortBursts) {
  FlowRate flow;
  core::TimePoint now{1s};
  EXPECT_EQ(flow.value(), 0);
  std::uint64_t written = 0;
  for (int i = 0; i < 100; ++i) {
    flow.give(now, written);
    written += kMega;
    flow.observe(now + 2ms, written, kMega / 2);
    flow.observe(now + 3ms, written, 0);
    now += 20ms;
  }
  EXPECT_EQ(flow.value(), 0);
}

TEST(FlowRate, IsWhatDrainsWhileBytesWait) {
  Drained rate;
  rate.drain(30 * kMega, 12);
  EXPECT_NEAR(rate.flow.value(), 30e6, 1e5);
}

TEST(FlowRate, LeavesOutTheBurstAfterARest) {
  Drained rate;
  rate.drain(500 * kMega, 1);
  rate.drain(30 * kMega, 11);
  EXPECT_NEAR(rate.flow.value(), 30e6, 1e5);
}

TEST(FlowRate, FollowsAChange) {
  Drained rate;
  rate.drain(30 * kMega, 40);
  rate.drain(8 * kMega, 100);
  EXPECT_NEAR(rate.flow.value(), 8e6, 1e5);
  rate.drain(30 * kMega, 100);
  EXPECT_NEAR(rate.flow.value(), 30e6, 1e5);
}

TEST(FlowRate, TakesAFlowThatStandsStillForSlowAndNotForUnknown) {
  Drained rate;
  rate.drain(0, 500);
  EXPECT_EQ(rate.flow.value(), FlowRate::kLeast);
}

TEST(FlowRate, OnlyGainsByAnIntervalThatEndsDry) {
  Drained rate;
  rate.drain(30 * kMega, 40);
  rate.now += 1s;
  rate.flow.observe(rate.now, rate.drained + kMega,
                    0);  // 1 MB in a second, but it may have rested most of it
  EXPECT_NEAR(rate.flow.value(), 30e6, 1e5);
}

TEST(FlowRate, SaysWhenItWasLastBusy) {
  FlowRate flow;
  const core::TimePoint start{1s};
  flow.give(start, 0);
  EXPECT_EQ(flow.last_busy(), core::TimePoint::max());
  flow.observe(start + 5ms, 1000, 0);
  EXPECT_EQ(flow.last_busy(), start + 5ms);
  flow.observe(start + 9ms, 1000, 0);
  EXPECT_EQ(flow.last_busy(), start + 5ms);
}

}  // namespace
}  // namespace fasthorovod::transport
