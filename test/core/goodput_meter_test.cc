#include "core/goodput_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace fasthorovod::core {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunk = 256 << 10;

/// Flows that take a chunk each time one has drained, in an order of events.
class Flows {
 public:
  /// `rates` in bytes a second.
  explicit Flows(const std::vector<double>& rates) : next_(rates.size()), drained_(rates.size()) {
    meter.begin(rates.size());
    for (const double rate : rates) {
      gaps_.push_back(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(kChunk) / rate)));
    }
  }

  std::vector<double> run(Duration time, bool dry = false) {
    std::vector<double> samples;
    for (const TimePoint end = now + time; now < end; now += 100us) {
      for (std::size_t flow = 0; flow < gaps_.size(); ++flow) {
        if (now < start_ + next_[flow]) continue;
        if (const auto sample = meter.look(flow, now, drained_[flow], dry)) {
          samples.push_back(*sample);
        }
        next_[flow] += gaps_[flow];
        drained_[flow] += kChunk;
      }
    }
    return samples;
  }

  GoodputMeter meter;
  TimePoint now{1s};

 private:
  const TimePoint start_ = now;
  std::vector<Duration> gaps_;
  std::vector<Duration> next_;
  std::vector<std::uint64_t> drained_;
};

TEST(GoodputMeter, AddsUpWhatFlowsCarry) {
  Flows flows({30e6, 30e6, 30e6, 30e6});
  const auto samples = flows.run(1s);
  EXPECT_GE(samples.size(), 15U);
  EXPECT_LE(samples.size(), 25U);
  for (const double sample : samples) EXPECT_NEAR(sample, 120e6, 2e6);
}

TEST(GoodputMeter, CountsASlowFlowForWhatItCarries) {
  Flows flows({30e6, 30e6, 30e6, 7e6});
  const auto samples = flows.run(1s);
  EXPECT_GE(samples.size(), 5U);
  for (const double sample : samples) EXPECT_NEAR(sample, 97e6, 3e6);
}

TEST(GoodputMeter, DoesNotWaitForAFlowThatStandsStill) {
  Flows flows({30e6, 1});
  const auto samples = flows.run(1s);
  EXPECT_GE(samples.size(), 3U);
  for (const double sample : samples) EXPECT_NEAR(sample, 30e6, 1e6);
}

TEST(GoodputMeter, LeavesOutABurst) {
  GoodputMeter meter;
  meter.begin(1);
  const TimePoint start{1s};
  EXPECT_FALSE(meter.look(0, start, 0, true));
  EXPECT_FALSE(meter.look(0, start + 1ms, 100'000'000, false));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_FALSE(meter.look(0, start + 5ms + i * 5ms, 100'000'000 + i * 50'000U, false));
  }
  const auto sample = meter.look(0, start + 45ms, 100'000'000 + 8 * 50'000U, false);
  ASSERT_TRUE(sample);
  EXPECT_NEAR(*sample, 10e6, 1);
}

TEST(GoodputMeter, TakesASampleAtTheEndOfWork) {
  Flows flows({30e6, 30e6});
  EXPECT_TRUE(flows.run(40ms).empty());
  const auto sample = flows.meter.rest(flows.now);
  ASSERT_TRUE(sample);
  EXPECT_NEAR(*sample, 60e6, 1e6);
  EXPECT_FALSE(flows.meter.rest(flows.now + 1s)) << "nothing was seen since";
}

TEST(GoodputMeter, TakesOneThoughAFlowHardlyCarriesAnything) {
  Flows flows({30e6, 30e6, 1});
  EXPECT_TRUE(flows.run(60ms).empty());
  const auto sample = flows.meter.rest(flows.now);
  ASSERT_TRUE(sample);
  EXPECT_NEAR(*sample, 60e6, 1e6);
}

TEST(GoodputMeter, LearnsNothingFromShortWork) {
  Flows flows({30e6, 30e6});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(flows.run(15ms).empty());
    EXPECT_FALSE(flows.meter.rest(flows.now));
  }
}

TEST(GoodputMeter, LearnsNothingWhereFlowsRunOutOfBytes) {
  Flows flows({30e6, 30e6});
  EXPECT_TRUE(flows.run(1s, true).empty());
  EXPECT_TRUE(flows.meter.waits_for_work());
}

TEST(GoodputMeter, BeginsAnew) {
  Flows flows({30e6, 30e6});
  EXPECT_TRUE(flows.run(40ms).empty());
  flows.meter.begin(2);
  EXPECT_FALSE(flows.meter.rest(flows.now));
  EXPECT_FALSE(flows.meter.look(9, flows.now, 0, false)) << "a flow that is not in use";
}

}  // namespace
}  // namespace fasthorovod::core
