#include "ops/compensation/od_sgd.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace fasthorovod::ops {
namespace {

using core::ErrorCode;

core::Status lost() { return core::Error{ErrorCode::kPeerLost, "rank 2 is gone", 2}; }

enum class Call { kTakeOver, kStart, kSucceed, kFail, kShow, kHide, kRestoreFresh, kRestoreLater };
constexpr std::array kCalls = {Call::kTakeOver,     Call::kStart,       Call::kSucceed,
                               Call::kFail,         Call::kShow,        Call::kHide,
                               Call::kRestoreFresh, Call::kRestoreLater};
constexpr std::uint64_t kLater = 7;

/// The rule as a table of states: what od_sgd.h says, written down another way.
struct Model {
  enum class State { kWarm, kReady, kDelayed, kAveraging, kUpdating, kFailed };

  explicit Model(std::uint64_t warm_up) : warm_up_steps(warm_up), state(resting()) {}

  [[nodiscard]] State resting() const {
    if (taken_over) return State::kDelayed;
    return steps < warm_up_steps ? State::kWarm : State::kReady;
  }

  [[nodiscard]] bool allows(Call call) const {
    const bool rests = state == State::kWarm || state == State::kReady || state == State::kDelayed;
    switch (call) {
      case Call::kTakeOver:
        return state == State::kReady && !shown;
      case Call::kStart:
        return (state == State::kWarm || state == State::kDelayed) && !shown;
      case Call::kSucceed:
      case Call::kFail:
        return state == State::kAveraging || state == State::kUpdating;
      case Call::kShow:
        return rests && !shown;
      case Call::kHide:
        return shown;
      case Call::kRestoreFresh:
      case Call::kRestoreLater:
        return (rests && !shown) || state == State::kFailed;
    }
    return false;
  }

  void apply(Call call) {
    switch (call) {
      case Call::kTakeOver:
        taken_over = true;
        break;
      case Call::kStart:
        if (state == State::kDelayed) ++steps;
        state = state == State::kDelayed ? State::kUpdating : State::kAveraging;
        return;
      case Call::kSucceed:
        if (state == State::kAveraging) ++steps;
        ++updates;
        break;
      case Call::kFail:
        state = State::kFailed;
        return;
      case Call::kShow:
      case Call::kHide:
        shown = call == Call::kShow;
        return;
      case Call::kRestoreFresh:
      case Call::kRestoreLater:
        steps = updates = call == Call::kRestoreLater ? kLater : 0;
        taken_over = call == Call::kRestoreLater;
        break;
    }
    state = resting();
  }

  std::uint64_t warm_up_steps;
  std::uint64_t steps = 0;
  std::uint64_t updates = 0;
  bool taken_over = false;
  bool shown = false;
  State state;
};

core::Status make(OdSgd& rule, Call call) {
  switch (call) {
    case Call::kTakeOver:
      return rule.take_over();
    case Call::kStart:
      return rule.start();
    case Call::kSucceed:
      return rule.finish({});
    case Call::kFail:
      return rule.finish(lost());
    case Call::kShow:
      return rule.show();
    case Call::kHide:
      return rule.hide();
    case Call::kRestoreFresh:
      return rule.restore({});
    case Call::kRestoreLater:
      return rule.restore({kLater, true});
  }
  return {};
}

void expect_alike(const OdSgd& rule, const Model& model) {
  using State = Model::State;
  ASSERT_EQ(rule.progress().steps, model.steps);
  ASSERT_EQ(rule.progress().taken_over, model.taken_over);
  ASSERT_EQ(rule.updates(), model.updates);
  ASSERT_EQ(rule.shown(), model.shown);
  ASSERT_EQ(rule.in_flight(), model.state == State::kAveraging || model.state == State::kUpdating);
  ASSERT_EQ(rule.awaits_take_over(), model.steps >= model.warm_up_steps && !model.taken_over);
  ASSERT_EQ(!rule.fault(), model.state == State::kFailed);
  const core::Result<OdSgd::Step> next = rule.next();
  const bool ready =
      model.state == State::kWarm || model.state == State::kReady || model.state == State::kDelayed;
  ASSERT_EQ(next.has_value(), ready && !model.shown);
  if (!next) return;
  ASSERT_EQ(*next == OdSgd::Step::kSynchronous, model.state == State::kWarm);
}

// One step of delay, never more: the global weights have all updates but that of the last step.
void expect_invariants(const OdSgd& rule) {
  ASSERT_LE(rule.updates(), rule.progress().steps);
  ASSERT_LE(rule.progress().steps, rule.updates() + 1);
  if (rule.updates() < rule.progress().steps) {
    ASSERT_TRUE(rule.in_flight() || !rule.fault());
  }
}

void try_all(const OdSgd& rule, const Model& model, int calls_left) {
  if (calls_left == 0) return;
  for (const Call call : kCalls) {
    OdSgd next_rule = rule;
    Model next_model = model;
    const bool allowed = model.allows(call);
    ASSERT_EQ(make(next_rule, call).has_value(), allowed) << static_cast<int>(call);
    if (allowed) next_model.apply(call);
    expect_alike(next_rule, next_model);
    expect_invariants(next_rule);
    if (testing::Test::HasFatalFailure()) return;
    // A refused call changed nothing: what follows it was tried without it.
    if (allowed) try_all(next_rule, next_model, calls_left - 1);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(OdSgd, AllowsWhatItSaysInEverySequenceOfCalls) {
  for (const std::uint64_t warm_up : {0U, 1U, 2U}) try_all(OdSgd(warm_up), Model(warm_up), 9);
}

TEST(OdSgd, WarmsUpThenDelays) {
  OdSgd rule(1);
  EXPECT_EQ(*rule.next(), OdSgd::Step::kSynchronous);
  ASSERT_TRUE(rule.start());
  EXPECT_EQ(rule.progress().steps, 0U);
  ASSERT_TRUE(rule.finish({}));
  EXPECT_EQ(rule.progress().steps, 1U);
  EXPECT_EQ(*rule.next(), OdSgd::Step::kDelayed);
  EXPECT_FALSE(rule.start());
  ASSERT_TRUE(rule.take_over());
  ASSERT_TRUE(rule.start());
  EXPECT_EQ(rule.progress().steps, 2U);
  EXPECT_EQ(rule.updates(), 1U);
  const core::Result<OdSgd::Step> early = rule.next();
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().message.find("exchange of step 2"), std::string::npos);
  ASSERT_TRUE(rule.finish({}));
  EXPECT_EQ(rule.updates(), 2U);
}

TEST(OdSgd, TellsTheSameFaultUntilItIsRestored) {
  OdSgd rule(0);
  ASSERT_TRUE(rule.take_over());
  ASSERT_TRUE(rule.start());
  ASSERT_TRUE(rule.finish(lost()));
  for (const core::Status& status : {rule.start(), rule.show(), rule.take_over(), rule.fault()}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(status.error().culprit, 2);
  }
  ASSERT_TRUE(rule.restore({5, true}));
  EXPECT_TRUE(rule.start());
}

TEST(OdSgd, RefusesAStateThatItsWarmUpDoesNotLeadTo) {
  OdSgd rule(3);
  EXPECT_FALSE(rule.restore({2, true}));
  EXPECT_FALSE(rule.restore({4, false}));
  EXPECT_TRUE(rule.restore({3, false}));
  EXPECT_TRUE(rule.awaits_take_over());
}

}  // namespace
}  // namespace fasthorovod::ops
