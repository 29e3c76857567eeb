// The number of flows on networks that are formulas, with a clock of the test's own.
#include "core/flow_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

namespace fasthorovod::core {
namespace {

using namespace std::chrono_literals;

constexpr int kMost = 8;
constexpr double kMega = 1e6 / 8;  // bytes a second in a Mbit/s
constexpr double kLink = 1000 * kMega;

/// What so many flows carry together.
using Network = std::function<double(int flows)>;

Network link_only(double link = kLink) {
  return [=](int) { return link; };
}

Network capped(double cap, double link = kLink) {
  return [=](int flows) { return std::min(flows * cap, link); };
}

/// The first flow is slower than the others.
Network with_a_slow_one(double slow, double cap, double link = kLink) {
  return [=](int flows) { return std::min(slow + (flows - 1) * cap, link); };
}

class Trial {
 public:
  explicit Trial(Network network, double noise = 0, unsigned seed = 1)
      : network_(std::move(network)), noise_(noise), random_(seed) {}

  void change(Network network) { network_ = std::move(network); }

  /// Samples of 40 ms each.
  void run(Duration time, int most = kMost) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += 40ms) {
      const double ideal = network_(std::min(count.in_use(), most));
      double best = 0;
      for (int flows = 1; flows <= most; ++flows) best = std::max(best, network_(flows));
      carried_ += ideal;
      flows_ += count.in_use();
      samples_ += 1;
      possible_ += best;
      const double factor = 1 + noise_ * std::normal_distribution<double>()(random_);
      count.learn(now_, ideal * std::max(factor, 0.1), most);
    }
  }

  /// Of what the best number of flows would have carried since the last call.
  double efficiency() {
    const double result = carried_ / possible_;
    carried_ = possible_ = flows_ = samples_ = 0;
    return result;
  }
  [[nodiscard]] double flows_on_average() const { return flows_ / samples_; }

  FlowCount count{4};

 private:
  Network network_;
  const double noise_;
  std::mt19937 random_;
  TimePoint now_{100s};
  double carried_ = 0;
  double possible_ = 0;
  double flows_ = 0;
  double samples_ = 0;
};

TEST(FlowCount, BeginsWithTheFirstNumber) {
  EXPECT_EQ(FlowCount(4).in_use(), 4);
  EXPECT_FALSE(FlowCount(4).tries());
  EXPECT_TRUE(FlowCount(4).experience().empty());
}

TEST(FlowCount, StaysWhereFlowsFillTheLinkExactly) {
  Trial trial(capped(250 * kMega));
  trial.run(9s);
  EXPECT_EQ(trial.count.in_use(), 4);
  EXPECT_GT(trial.efficiency(), 0.999) << "before fewer are tried";
  trial.run(10min);
  EXPECT_EQ(trial.count.in_use(), 4);
  EXPECT_GT(trial.efficiency(), 0.999);
}

TEST(FlowCount, GrowsWhileEachFlowIsLimitedByItself) {
  Trial trial(capped(100 * kMega));
  trial.run(3s);
  EXPECT_EQ(trial.count.in_use(), kMost);
  EXPECT_FALSE(trial.count.tries());
  (void)trial.efficiency();
  trial.run(10min);
  EXPECT_GT(trial.efficiency(), 0.995);
}

TEST(FlowCount, GrowsToTheLinkAndNoFurther) {
  Trial trial(capped(180 * kMega));
  trial.run(5s);
  EXPECT_EQ(trial.count.in_use(), 6);
  trial.run(10s);
  (void)trial.efficiency();
  trial.run(10min);
  EXPECT_GT(trial.efficiency(), 0.995);
}

TEST(FlowCount, GetsPastAFlowThatSharesTheWayOfAnother) {
  Trial trial([](int flows) { return (flows < 5 ? flows : flows - 1) * 100 * kMega; });
  trial.run(8s);
  EXPECT_EQ(trial.count.in_use(), kMost);
}

TEST(FlowCount, GrowsByQuartersWhereThereAreMany) {
  Trial trial(capped(20 * kMega));
  trial.run(20s, 64);
  EXPECT_GE(trial.count.in_use(), 50);
  EXPECT_LE(trial.count.in_use(), 64);
}

TEST(FlowCount, ShrinksToOneWhereOneDoesAsWell) {
  Trial trial(link_only());
  trial.run(15s);
  EXPECT_EQ(trial.count.in_use(), 1);
  EXPECT_GT(trial.efficiency(), 0.999);
}

TEST(FlowCount, ShrinksToTheFewestThatFillTheLink) {
  Trial trial(capped(500 * kMega));
  trial.run(15s);
  EXPECT_EQ(trial.count.in_use(), 2);
  (void)trial.efficiency();
  trial.run(10min);
  EXPECT_GT(trial.efficiency(), 0.995);
}

TEST(FlowCount, TriesFewerOnlyAfterAPause) {
  Trial trial(link_only());
  for (int i = 0; i < 240; ++i) {
    EXPECT_GE(trial.count.in_use(), 4);
    trial.run(40ms);
  }
}

TEST(FlowCount, FollowsALimitThatIsSetAndLifted) {
  Trial trial(link_only());
  trial.run(15s);
  ASSERT_EQ(trial.count.in_use(), 1);
  trial.change(capped(250 * kMega));
  trial.run(5s);
  EXPECT_EQ(trial.count.in_use(), 4);
  trial.change(capped(100 * kMega));
  trial.run(5s);
  EXPECT_EQ(trial.count.in_use(), 8);
  trial.change(link_only());
  trial.run(15s);
  EXPECT_EQ(trial.count.in_use(), 1);
}

TEST(FlowCount, FollowsNeighboursThatComeAndLeave) {
  Trial trial(capped(250 * kMega));
  trial.run(10s);
  trial.change(capped(250 * kMega, 500 * kMega));
  trial.run(15s);
  EXPECT_EQ(trial.count.in_use(), 2);
  trial.change(capped(250 * kMega));
  trial.run(40s);
  EXPECT_EQ(trial.count.in_use(), 4) << "though two carry as much as before";
}

TEST(FlowCount, AddsAFlowForOneThatBecameSlow) {
  Trial trial(capped(250 * kMega));
  trial.run(10s);
  trial.change(with_a_slow_one(60 * kMega, 250 * kMega));
  trial.run(5s);
  EXPECT_EQ(trial.count.in_use(), 5);
  (void)trial.efficiency();
  trial.run(60s);
  EXPECT_EQ(trial.count.in_use(), 5);
  EXPECT_GT(trial.efficiency(), 0.99);
}

TEST(FlowCount, ComesThroughNoise) {
  const struct {
    Network network;
    int least;
    int most;
  } cases[] = {{capped(250 * kMega), 4, 6},
               {capped(100 * kMega), 7, 8},
               {capped(500 * kMega), 2, 5},
               {link_only(), 1, 5},
               {with_a_slow_one(60 * kMega, 250 * kMega), 4, 7}};
  for (const auto& [network, least, most] : cases) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", at least " << least);
      Trial trial(network, 0.05, seed);
      trial.run(10s);
      (void)trial.efficiency();
      trial.run(2min);
      EXPECT_GT(trial.flows_on_average(), least - 0.5);
      EXPECT_LT(trial.flows_on_average(), most + 0.5);
      EXPECT_GT(trial.efficiency(), 0.94);
    }
  }
}

TEST(FlowCount, NeverLeavesItsBounds) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int most = 1 + static_cast<int>(random() % 12);
    FlowCount count(1 + static_cast<int>(random() % 8));
    TimePoint now{1s};
    for (int i = 0; i < 2000; ++i, now += std::chrono::milliseconds(random() % 500)) {
      const int there = std::max(1, most - static_cast<int>(random() % 3));
      count.learn(now, 1.0 + static_cast<double>(random() % 1000), there);
      ASSERT_GE(count.in_use(), 1);
      ASSERT_LE(count.in_use(), std::max(most, 8));
    }
  }
}

TEST(FlowCount, TakesFlowsThatEndedOutOfUse) {
  Trial trial(capped(100 * kMega));
  trial.run(5s);
  ASSERT_EQ(trial.count.in_use(), 8);
  trial.run(1s, 3);
  EXPECT_LE(trial.count.in_use(), 3);
}

TEST(FlowCount, TellsWhatItTried) {
  Trial trial(capped(250 * kMega));
  trial.run(15s);
  const auto& tried = trial.count.experience();
  ASSERT_EQ(tried.size(), 4U);
  EXPECT_EQ(tried[0].flows, 3);
  EXPECT_EQ(tried[1].flows, 4);
  EXPECT_EQ(tried[2].flows, 5);
  EXPECT_DOUBLE_EQ(tried[0].goodput, 750 * kMega);
  EXPECT_DOUBLE_EQ(tried[2].goodput, kLink);
}

}  // namespace
}  // namespace fasthorovod::core
