#include "transport/peer_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr core::TimePoint kNow{100s};
constexpr core::TimePoint kBusy = core::TimePoint::max();

/// Flows that have joined. Owner of what says whether they are in use.
template <std::size_t Count>
struct Joined {
  explicit Joined(PeerRates& rates) {
    for (std::size_t i = 0; i < Count; ++i) rates.join(&in_use[i], in_use[i]);
  }
  PeerRates::FlowKey operator[](std::size_t flow) const { return &in_use[flow]; }
  [[nodiscard]] int used() const {
    return static_cast<int>(
        std::ranges::count_if(in_use, [](const auto& one) { return one.load(); }));
  }
  std::array<std::atomic<bool>, Count> in_use{};
};

TEST(PeerRates, KnowNothingAtFirst) {
  PeerRates rates;
  const Joined<1> flows(rates);
  rates.publish(flows[0], 0, {});
  EXPECT_EQ(rates.compare(flows[0], kNow).fastest, 0);
  EXPECT_EQ(rates.compare(flows[0], kNow).sum, 0);
}

TEST(PeerRates, CountAFlowThatIsNotKnownAsTheFastest) {
  PeerRates rates;
  const Joined<3> flows(rates);
  rates.publish(flows[0], 10, kBusy);
  rates.publish(flows[1], 40, kBusy);
  rates.publish(flows[2], 0, {});
  EXPECT_EQ(rates.compare(flows[0], kNow).own, 10);
  EXPECT_EQ(rates.compare(flows[2], kNow).own, 40);
  EXPECT_EQ(rates.compare(flows[0], kNow).fastest, 40);
  EXPECT_EQ(rates.compare(flows[0], kNow).sum, 90);
}

TEST(PeerRates, BelieveMoreOfAFlowTheLongerItRests) {
  PeerRates rates;
  const Joined<2> flows(rates);
  rates.publish(flows[0], 10, kNow);
  rates.publish(flows[1], 80, kBusy);
  EXPECT_EQ(rates.compare(flows[0], kNow).own, 10);
  EXPECT_DOUBLE_EQ(rates.compare(flows[0], kNow + 250ms).own, 20);
  EXPECT_DOUBLE_EQ(rates.compare(flows[0], kNow + 500ms).own, 40);
  EXPECT_DOUBLE_EQ(rates.compare(flows[0], kNow + 1h).own, 80);
}

TEST(PeerRates, ForgetFlowsThatEnded) {
  PeerRates rates;
  const Joined<2> flows(rates);
  rates.publish(flows[0], 10, kBusy);
  rates.publish(flows[1], 80, kBusy);
  rates.forget(flows[1]);
  EXPECT_EQ(rates.compare(flows[0], kNow).fastest, 10);
  EXPECT_EQ(rates.compare(flows[0], kNow).sum, 10);
}

TEST(PeerRates, UseAllFlowsUnlessTheyAreToMeasure) {
  PeerRates rates;
  const Joined<9> flows(rates);
  EXPECT_EQ(flows.used(), 9);
  EXPECT_FALSE(rates.report().measures);
}

TEST(PeerRates, UseTheFirstFlowsThatAreThere) {
  PeerRates rates(2);
  const Joined<4> flows(rates);
  EXPECT_EQ(flows.used(), 2);
  EXPECT_TRUE(flows.in_use[0] && flows.in_use[1]);
  rates.forget(flows[0]);
  EXPECT_TRUE(flows.in_use[1] && flows.in_use[2]);
  EXPECT_FALSE(flows.in_use[3]);
  rates.forget(flows[1]);
  rates.forget(flows[2]);
  EXPECT_TRUE(flows.in_use[3]) << "the last one carries all";
  rates.forget(flows[2]);
}

TEST(PeerRates, CompareOnlyFlowsInUse) {
  PeerRates rates(2);
  const Joined<3> flows(rates);
  rates.publish(flows[0], 10, kBusy);
  rates.publish(flows[1], 20, kBusy);
  rates.publish(flows[2], 90, kBusy);
  EXPECT_EQ(rates.compare(flows[0], kNow).fastest, 20);
  EXPECT_EQ(rates.compare(flows[0], kNow).sum, 30);
}

/// Flows in use take a chunk whenever 256 KiB have drained; each is capped, all share a link.
template <std::size_t Count>
void drive(PeerRates& rates, const Joined<Count>& flows, core::TimePoint& now,
           core::Duration time) {
  constexpr double kCap = 12.5e6;
  constexpr double kChunk = 256 << 10;
  static std::array<double, Count> drained{};
  std::array<double, Count> looked = drained;
  for (const auto end = now + time; now < end; now += 500us) {
    for (std::size_t i = 0; i < Count; ++i) {
      if (!flows.in_use[i]) continue;
      drained[i] += kCap * 500e-6;
      if (drained[i] - looked[i] < kChunk) continue;
      looked[i] = drained[i];
      rates.look(flows[i], now, static_cast<std::uint64_t>(drained[i]), false);
    }
  }
}

TEST(PeerRates, UseMoreFlowsWhileAllCarryMore) {
  PeerRates rates(4);
  const Joined<8> flows(rates);
  core::TimePoint now = kNow;
  drive(rates, flows, now, 5s);
  EXPECT_EQ(flows.used(), 8);
  const PeerReport report = rates.report();
  EXPECT_TRUE(report.measures);
  EXPECT_FALSE(report.waits_for_work);
  EXPECT_EQ(report.flows.size(), 8U);
  EXPECT_NEAR(report.goodput, 100e6, 2e6);
  EXPECT_EQ(report.tried.size(), 5U) << "4 to 8";
}

TEST(PeerRates, LearnNothingFromFlowsThatRunOutOfBytes) {
  PeerRates rates(2);
  const Joined<4> flows(rates);
  for (int i = 0; i < 10'000; ++i) {
    rates.look(flows[static_cast<std::size_t>(i % 2)], kNow + i * 1ms,
               static_cast<std::uint64_t>(i) << 20, true);
  }
  rates.rest(kNow + 1h);
  EXPECT_EQ(flows.used(), 2);
  EXPECT_TRUE(rates.report().waits_for_work);
  EXPECT_TRUE(rates.report().tried.empty());
}

TEST(PeerRates, AreOneForAllLanesOfARank) {
  RateBoard board;
  EXPECT_EQ(board.of(3), board.of(3));
  EXPECT_NE(board.of(3), board.of(4));
  const std::vector<PeerReport> reports = board.reports();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].peer, 3);
  EXPECT_EQ(reports[1].peer, 4);
}

}  // namespace
}  // namespace fasthorovod::transport
