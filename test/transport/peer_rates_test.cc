#include "transport/peer_rates.h"

#include <gtest/gtest.h>

#include <array>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr core::TimePoint kNow{100s};
constexpr core::TimePoint kBusy = core::TimePoint::max();

TEST(PeerRates, KnowNothingAtFirst) {
  PeerRates rates;
  const int flow = 0;
  rates.publish(&flow, 0, {});
  EXPECT_EQ(rates.compare(&flow, kNow).fastest, 0);
  EXPECT_EQ(rates.compare(&flow, kNow).sum, 0);
}

TEST(PeerRates, CountAFlowThatIsNotKnownAsTheFastest) {
  PeerRates rates;
  const std::array<int, 3> flows{};
  rates.publish(&flows[0], 10, kBusy);
  rates.publish(&flows[1], 40, kBusy);
  rates.publish(&flows[2], 0, {});
  EXPECT_EQ(rates.compare(&flows[0], kNow).own, 10);
  EXPECT_EQ(rates.compare(&flows[2], kNow).own, 40);
  EXPECT_EQ(rates.compare(&flows[0], kNow).fastest, 40);
  EXPECT_EQ(rates.compare(&flows[0], kNow).sum, 90);
}

TEST(PeerRates, BelieveMoreOfAFlowTheLongerItRests) {
  PeerRates rates;
  const std::array<int, 2> flows{};
  rates.publish(&flows[0], 10, kNow);
  rates.publish(&flows[1], 80, kBusy);
  EXPECT_EQ(rates.compare(&flows[0], kNow).own, 10);
  EXPECT_DOUBLE_EQ(rates.compare(&flows[0], kNow + 250ms).own, 20);
  EXPECT_DOUBLE_EQ(rates.compare(&flows[0], kNow + 500ms).own, 40);
  EXPECT_DOUBLE_EQ(rates.compare(&flows[0], kNow + 1h).own, 80);
}

TEST(PeerRates, ForgetFlowsThatEnded) {
  PeerRates rates;
  const std::array<int, 2> flows{};
  rates.publish(&flows[0], 10, kBusy);
  rates.publish(&flows[1], 80, kBusy);
  rates.forget(&flows[1]);
  EXPECT_EQ(rates.compare(&flows[0], kNow).fastest, 10);
  EXPECT_EQ(rates.compare(&flows[0], kNow).sum, 10);
}

TEST(PeerRates, AreOneForAllLanesOfARank) {
  RateBoard board;
  EXPECT_EQ(board.of(3), board.of(3));
  EXPECT_NE(board.of(3), board.of(4));
}

}  // namespace
}  // namespace fasthorovod::transport
