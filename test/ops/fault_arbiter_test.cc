#include "ops/fault_arbiter.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace fasthorovod::ops {
namespace {

using core::Error;
using core::ErrorCode;

// One rank's arbiter, what it sent, and a clock that runs on request.
class Bench {
 public:
  explicit Bench(int rank, int size = 3)
      : world_(core::make_world({}, 0, rank,
                                std::vector<core::Placement>(static_cast<std::size_t>(size)))),
        arbiter_(world_,
                 {.send = [this](int to, const core::ControlMessage& message) -> core::Status {
                    if (unreachable == to) return Error{ErrorCode::kPeerLost, "gone"};
                    sent.emplace_back(to, message);
                    return {};
                  },
                  .call_after =
                      [this](core::Duration delay, std::function<void()> function) {
                        timers_.emplace(now_ + delay, std::move(function));
                      },
                  .unannounced = [this](const Error& error) { unannounced.push_back(error); },
                  .conclude = [this](const Error& error) { verdicts.push_back(error); }}) {}

  FaultArbiter& arbiter() { return arbiter_; }

  void advance(core::Duration duration) {
    now_ += duration;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      const std::function<void()> function = timers_.extract(timers_.begin()).mapped();
      function();
    }
  }

  template <typename Message>
  [[nodiscard]] int count() const {
    int count = 0;
    for (const auto& [rank, message] : sent)
      count += std::holds_alternative<Message>(message) ? 1 : 0;
    return count;
  }

  std::vector<std::pair<int, core::ControlMessage>> sent;
  std::vector<Error> verdicts;
  std::vector<Error> unannounced;
  int unreachable = -1;

 private:
  core::World world_;
  core::Duration now_{};
  std::multimap<core::Duration, std::function<void()>> timers_;
  FaultArbiter arbiter_;
};

const Error kLost{ErrorCode::kPeerLost, "rank 2 is gone", 2};
const Error kStall{ErrorCode::kStalled, "nothing moves", 1};

TEST(FaultArbiter, MakesTheFirstFaultRankZeroHearsOfTheVerdictForAll) {
  Bench bench(0);
  bench.arbiter().fault(kLost);
  bench.arbiter().fault({ErrorCode::kPeerLost, "an echo", 1});
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 2);
  EXPECT_EQ(bench.count<core::Abort>(), 2);
}

TEST(FaultArbiter, ReportsOnceAndTakesTheVerdict) {
  Bench bench(1);
  bench.arbiter().fault(kLost);
  bench.arbiter().fault(kLost);
  EXPECT_EQ(bench.count<core::FaultReport>(), 1);
  EXPECT_TRUE(bench.verdicts.empty());
  bench.arbiter().verdict({ErrorCode::kPeerLost, "rank 0 heard of another first", 0});
  bench.advance(FaultArbiter::kVerdictWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 0);
}

TEST(FaultArbiter, ConcludesByItselfWithoutAVerdict) {
  Bench bench(1);
  bench.arbiter().fault(kLost);
  bench.advance(FaultArbiter::kVerdictWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 2);
}

TEST(FaultArbiter, AsksNobodyWhenRankZeroIsLostOrOutOfReach) {
  Bench lost(1);
  lost.arbiter().coordinator_lost({ErrorCode::kPeerLost, "rank 0 is gone", 0});
  EXPECT_EQ(lost.verdicts.size(), 1U);
  EXPECT_TRUE(lost.sent.empty());
  Bench unreachable(1);
  unreachable.unreachable = 0;
  unreachable.arbiter().fault(kLost);
  EXPECT_EQ(unreachable.verdicts.size(), 1U);
}

TEST(FaultArbiter, WaitsForTheVerdictOfARankZeroWhoseFlowsEnded) {
  Bench bench(1);
  bench.arbiter().fault({ErrorCode::kPeerLost, "rank 0 closed its flows", 0});
  EXPECT_TRUE(bench.verdicts.empty());
  bench.arbiter().verdict(kLost);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 2);
}

TEST(FaultArbiter, BlamesForAStallWhoDoesNotAnswerTheRollCall) {
  Bench bench(0);
  bench.arbiter().fault(kStall);
  bench.arbiter().fault(kStall);
  EXPECT_EQ(bench.count<core::RollCall>(), 2);
  bench.arbiter().present(1);
  EXPECT_TRUE(bench.verdicts.empty());
  bench.advance(FaultArbiter::kRollCallWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 2);
  EXPECT_EQ(bench.count<core::Abort>(), 2);
}

TEST(FaultArbiter, KeepsTheWordsOfAStallWhenAllAnswer) {
  Bench bench(0);
  bench.arbiter().fault(kStall);
  bench.arbiter().present(1);
  bench.arbiter().present(2);
  bench.advance(FaultArbiter::kRollCallWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 1);
  EXPECT_EQ(bench.verdicts.front().message, "nothing moves");
}

TEST(FaultArbiter, LeavesAStallToTheCoordinatorWhenAllAnswerAndNoOperationIsStuck) {
  Bench bench(0);
  for (int round = 1; round <= 2; ++round) {
    bench.arbiter().fault({ErrorCode::kStalled, "no plan comes"});
    EXPECT_EQ(bench.count<core::RollCall>(), 2 * round);
    bench.arbiter().present(1);
    bench.arbiter().present(2);
    bench.advance(FaultArbiter::kRollCallWait);
    EXPECT_TRUE(bench.verdicts.empty());
  }
}

TEST(FaultArbiter, TrustsARankZeroThatCallsTheRoll) {
  Bench bench(2);
  bench.arbiter().fault(kStall);
  bench.arbiter().roll_called();
  bench.advance(2 * FaultArbiter::kSilenceWait);
  EXPECT_TRUE(bench.verdicts.empty());
  bench.arbiter().fault(kStall);  // and asks again when nothing came of it
  EXPECT_EQ(bench.count<core::FaultReport>(), 2);
  bench.advance(FaultArbiter::kSilenceWait);
  EXPECT_EQ(bench.verdicts.size(), 1U);
}

TEST(FaultArbiter, TakesALossDuringAStallForTheEndOfARankThatConcludedFirst) {
  Bench bench(1);
  bench.arbiter().fault(kStall);
  bench.arbiter().fault(kLost);
  EXPECT_EQ(bench.count<core::FaultReport>(), 2);
  bench.advance(FaultArbiter::kVerdictWait);
  EXPECT_TRUE(bench.verdicts.empty());
  bench.advance(FaultArbiter::kSilenceWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 0);
}

TEST(FaultArbiter, BlamesForAStallRankZeroWhenItSaysNothing) {
  Bench bench(2);
  bench.arbiter().fault(kStall);
  bench.arbiter().fault(kStall);
  EXPECT_EQ(bench.count<core::FaultReport>(), 1);
  bench.advance(FaultArbiter::kVerdictWait);
  EXPECT_TRUE(bench.verdicts.empty());
  bench.advance(FaultArbiter::kSilenceWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 0);
}

TEST(FaultArbiter, LetsALossSettleAStall) {
  Bench bench(0);
  bench.arbiter().fault(kStall);
  bench.arbiter().fault(kLost);
  bench.advance(FaultArbiter::kRollCallWait);
  ASSERT_EQ(bench.verdicts.size(), 1U);
  EXPECT_EQ(bench.verdicts.front().culprit, 2);
}

TEST(FaultArbiter, TakesTheEndOfFlowsForAFaultOnlyWhenNobodySaysMore) {
  for (const int rank : {0, 1}) {
    Bench bench(rank);
    bench.arbiter().lost(kLost);
    EXPECT_TRUE(bench.sent.empty());
    EXPECT_TRUE(bench.verdicts.empty());
    bench.advance(FaultArbiter::kDepartureWait);
    bench.advance(FaultArbiter::kVerdictWait);
    ASSERT_EQ(bench.verdicts.size(), 1U);
    EXPECT_EQ(bench.verdicts.front().culprit, 2);
  }
}

TEST(FaultArbiter, ForgetsTheEndOfFlowsToARankThatLeft) {
  for (const bool said_before : {true, false}) {
    Bench bench(1);
    if (said_before) bench.arbiter().left(2);
    bench.arbiter().lost(kLost);
    bench.arbiter().left(2);
    bench.advance(FaultArbiter::kDepartureWait);
    bench.advance(FaultArbiter::kVerdictWait);
    EXPECT_TRUE(bench.sent.empty());
    EXPECT_TRUE(bench.verdicts.empty());
  }
}

TEST(FaultArbiter, TakesEveryEndForADepartureAfterRankZeroHasLeft) {
  for (const bool rank_zero_first : {true, false}) {
    Bench bench(1);
    if (rank_zero_first) bench.arbiter().left(0);
    bench.arbiter().lost(kLost);
    bench.arbiter().left(0);
    bench.advance(FaultArbiter::kDepartureWait);
    ASSERT_EQ(bench.unannounced.size(), 1U);
    EXPECT_EQ(bench.unannounced.front().culprit, 2);
    EXPECT_TRUE(bench.sent.empty());
    EXPECT_TRUE(bench.verdicts.empty());
  }
}

TEST(FaultArbiter, ExpectsNoAnswerOfARankThatLeft) {
  const Error waits_for_nobody{ErrorCode::kStalled, "nothing moves", -1};
  for (const bool during_the_roll_call : {true, false}) {
    Bench bench(0);
    if (!during_the_roll_call) bench.arbiter().left(2);
    bench.arbiter().fault(waits_for_nobody);
    bench.arbiter().present(1);
    bench.arbiter().left(2);
    bench.advance(FaultArbiter::kRollCallWait);
    EXPECT_TRUE(bench.verdicts.empty());
  }
}

TEST(FaultArbiter, HearsNothingOnceItHasRetired) {
  Bench bench(0);
  bench.arbiter().fault(kStall);
  bench.arbiter().retire();
  bench.arbiter().fault(kLost);
  bench.advance(FaultArbiter::kRollCallWait);
  EXPECT_TRUE(bench.verdicts.empty());
}

}  // namespace
}  // namespace fasthorovod::ops
