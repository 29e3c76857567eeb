#include "transport/flow_rate.h"

#include <gtest/gtest.h>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMega = 1'000'000;

// Bytes are always waiting; `rate` of them are acknowledged each second.
void drain(FlowRate& flow, core::TimePoint& now, std::uint64_t& drained, std::uint64_t rate,
           int milliseconds) {
  for (int i = 0; i < milliseconds; ++i) {
    now += 1ms;
    drained += rate / 1000;
    flow.observe(now, drained + kMega, kMega);
  }
}

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
  FlowRate flow;
  core::TimePoint now{1s};
  std::uint64_t drained = 0;
  flow.give(now, 0);
  drain(flow, now, drained, 30 * kMega, 12);
  EXPECT_NEAR(flow.value(), 30e6, 1e5);
}

TEST(FlowRate, LeavesOutTheBurstAfterARest) {
  FlowRate flow;
  core::TimePoint now{1s};
  std::uint64_t drained = 0;
  flow.give(now, 0);
  drain(flow, now, drained, 500 * kMega, 1);
  drain(flow, now, drained, 30 * kMega, 11);
  EXPECT_NEAR(flow.value(), 30e6, 1e5);
}

TEST(FlowRate, FollowsAChange) {
  FlowRate flow;
  core::TimePoint now{1s};
  std::uint64_t drained = 0;
  flow.give(now, 0);
  drain(flow, now, drained, 30 * kMega, 40);
  drain(flow, now, drained, 8 * kMega, 100);
  EXPECT_NEAR(flow.value(), 8e6, 1e5);
  drain(flow, now, drained, 30 * kMega, 100);
  EXPECT_NEAR(flow.value(), 30e6, 1e5);
}

TEST(FlowRate, TakesAFlowThatStandsStillForSlowAndNotForUnknown) {
  FlowRate flow;
  core::TimePoint now{1s};
  std::uint64_t drained = 0;
  flow.give(now, 0);
  drain(flow, now, drained, 0, 500);
  EXPECT_EQ(flow.value(), FlowRate::kLeast);
}

TEST(FlowRate, OnlyGainsByAnIntervalThatEndsDry) {
  FlowRate flow;
  core::TimePoint now{1s};
  std::uint64_t drained = 0;
  flow.give(now, 0);
  drain(flow, now, drained, 30 * kMega, 40);
  now += 1s;
  flow.observe(now, drained + kMega, 0);  // 1 MB in a second, but it may have rested most of it
  EXPECT_NEAR(flow.value(), 30e6, 1e5);
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
