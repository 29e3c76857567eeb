#include "ops/fault_arbiter.h"

#include <fmt/format.h>

#include <utility>

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;

FaultArbiter::FaultArbiter(const core::World& world, Hooks hooks)
    : world_(world), hooks_(std::move(hooks)) {}

void FaultArbiter::fault(Error error) {
  if (concluded_ || retired_) return;
  const bool stalled = error.code == ErrorCode::kStalled;
  if (world_.rank == 0) return stalled ? call_roll(std::move(error)) : judge(error);
  // Also when rank 0 seems to be at fault: its flows may end because it concluded first, and its
  // verdict is on the way.
  report(error);
}

void FaultArbiter::lost(Error error) {
  const auto decide = [this](const Error& lost) {
    if (concluded_ || retired_ || has_left(lost.culprit)) return;
    if (has_left(0)) return hooks_.unannounced(lost);
    fault(lost);
  };
  if (has_left(0)) return decide(error);
  hooks_.call_after(kDepartureWait, [decide, error = std::move(error)] { decide(error); });
}

void FaultArbiter::verdict(const Error& error) { conclude(error); }

void FaultArbiter::judge(const Error& error) {
  broadcast(core::Abort{error});
  conclude(error);
}

void FaultArbiter::report(const Error& error) {
  const bool stalled = error.code == ErrorCode::kStalled;
  if (stalled ? awaited_ == reports_ : std::exchange(reported_, true)) return;
  if (stalled) awaited_ = reports_;
  if (!hooks_.send(0, core::FaultReport{error})) return conclude(error);
  if (!stalled) {
    // A rank 0 that is silent about a stall as well has stopped, and what looks like a loss is
    // another rank that has concluded so: the stall's own timer ends that.
    return hooks_.call_after(kVerdictWait, [this, error] {
      if (awaited_ != reports_) conclude(error);
    });
  }
  // Rank 0 calls the roll; when it does not, it is the one that stopped.
  Error silent{ErrorCode::kStalled,
               fmt::format("{} does not answer: its process is stopped or starved; {}",
                           world_.describe(0), error.message),
               0};
  hooks_.call_after(kSilenceWait, [this, silent = std::move(silent), report = reports_] {
    if (report == reports_) conclude(silent);
  });
}

void FaultArbiter::call_roll(Error error) {
  if (silent_) return;
  silent_.emplace();
  for (int rank = 1; rank < world_.size; ++rank) {
    if (!has_left(rank)) silent_->insert(rank);
  }
  broadcast(core::RollCall{});
  hooks_.call_after(kRollCallWait, [this, error = std::move(error)] { end_roll_call(error); });
}

void FaultArbiter::present(int rank) {
  if (silent_) silent_->erase(rank);
}

// When everybody answers, the processes are well and data gets lost between two of them: what the
// first rank that noticed said stands.
void FaultArbiter::end_roll_call(const Error& error) {
  if (concluded_ || retired_) return;
  std::set<int> silent = *std::exchange(silent_, std::nullopt);
  std::erase_if(silent, [this](int rank) { return has_left(rank); });
  if (silent.empty()) {
    if (error.culprit >= 0) judge(error);
    return;
  }
  const int rank = *silent.begin();
  judge({ErrorCode::kStalled,
         fmt::format("{} does not answer: its process is stopped or starved; {}",
                     world_.describe(rank), error.message),
         rank});
}

void FaultArbiter::conclude(const Error& error) {
  if (retired_ || std::exchange(concluded_, true)) return;
  hooks_.conclude(error);
}

void FaultArbiter::broadcast(const core::ControlMessage& message) {
  // A rank that can not be told is reported by its control connection.
  for (int rank = 1; rank < world_.size; ++rank) (void)hooks_.send(rank, message);
}

}  // namespace fasthorovod::ops
