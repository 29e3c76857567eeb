#include "ops/compensation/od_sgd.h"

#include <fmt/format.h>

namespace fasthorovod::ops {
namespace {

core::Error refuse(const std::string& tried, const std::string& why) {
  return {core::ErrorCode::kInvalidArgument, fmt::format("{}: {}", tried, why)};
}

}  // namespace

core::Status OdSgd::fault() const { return fault_ ? core::Status(*fault_) : core::Status(); }

core::Status OdSgd::refusal(const std::string& tried) const {
  if (fault_) return *fault_;
  if (in_flight_) {
    return refuse(tried, fmt::format("the exchange of step {} is still under way", updates_ + 1));
  }
  if (shown_) return refuse(tried, "not while the model has the global weights");
  return {};
}

core::Result<OdSgd::Step> OdSgd::next() const {
  if (core::Status refused = refusal("a step"); !refused) return std::move(refused).error();
  return steps_ < warm_up_ ? Step::kSynchronous : Step::kDelayed;
}

bool OdSgd::awaits_take_over() const { return !taken_over_ && steps_ >= warm_up_; }

core::Status OdSgd::take_over() {
  if (core::Status refused = refusal("taking over"); !refused) return refused;
  if (!awaits_take_over()) {
    return refuse("taking over", taken_over_
                                     ? "it was done before"
                                     : fmt::format("step {} of {} of the warm-up is the next",
                                                   steps_ + 1, warm_up_));
  }
  taken_over_ = true;
  return {};
}

core::Status OdSgd::start() {
  const core::Result<Step> step = next();
  if (!step) return step.error();
  if (awaits_take_over()) return refuse("a delayed step", "the global weights are not taken over");
  in_flight_ = *step;
  if (*step == Step::kDelayed) ++steps_;
  return {};
}

core::Status OdSgd::finish(const core::Status& outcome) {
  if (!in_flight_) return refuse("the end of an exchange", "none is under way");
  const Step step = *in_flight_;
  in_flight_.reset();
  if (!outcome) {
    fault_ = outcome.error();
    return {};
  }
  ++updates_;
  if (step == Step::kSynchronous) ++steps_;
  return {};
}

core::Status OdSgd::show() {
  if (core::Status refused = refusal("showing the global weights"); !refused) return refused;
  shown_ = true;
  return {};
}

core::Status OdSgd::hide() {
  if (!shown_) return refuse("hiding the global weights", "they are not shown");
  shown_ = false;
  return {};
}

core::Status OdSgd::restore(const Progress& progress) {
  const std::string tried = "going on from a saved state";
  if (!fault_) {
    if (core::Status refused = refusal(tried); !refused) return refused;
  }
  const bool possible =
      progress.taken_over ? progress.steps >= warm_up_ : progress.steps <= warm_up_;
  if (!possible) {
    return refuse(tried,
                  fmt::format("{} steps with the global weights {} the model do not go with "
                              "a warm-up of {}",
                              progress.steps, progress.taken_over ? "apart from" : "in", warm_up_));
  }
  steps_ = updates_ = progress.steps;
  taken_over_ = progress.taken_over;
  fault_.reset();
  return {};
}

}  // namespace fasthorovod::ops
