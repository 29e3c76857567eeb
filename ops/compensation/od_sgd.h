// OD-SGD (one-step-delay SGD): in which order things happen, for one set of parameters on one rank.
//
// The first steps are a warm-up of synchronous SGD. Then the global weights W and their velocity V
// leave the model: the model gets local weights, made from W and this rank's own gradient alone,
// and computes the next gradient with them while the ranks average the last one. When that exchange
// is done the global update is made from the average, the same on all ranks:
//
//     warm-up        start, finish              W is in the model
//     take over      W and V are kept apart from the model, once
//     delayed step   start: the model has its local weights, the exchange is under way
//                    finish: W and V have the update of that step
//
// There is one exchange at most, so the global update of a step is made before the next step: the
// delay is one step, never more. show() and hide() enclose a time in which the model has W, for
// validation; no step is made then.
//
// A failed exchange is the end: W may have its update on some ranks and not on others. Every later
// call tells the same error, until restore().
//
// It moves nothing and computes nothing. A refused call changes nothing. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"

namespace fasthorovod::ops {

class OdSgd final {
 public:
  enum class Step { kSynchronous, kDelayed };

  /// How far a training is.
  struct Progress {
    std::uint64_t steps = 0;  // of the model, from the start of the training
    bool taken_over = false;  // W and V are apart from the model
  };

  explicit OdSgd(std::uint64_t warm_up) : warm_up_(warm_up) {}

  /// Which kind the next step is. kInvalidArgument: not now, and why; or the error of the exchange
  /// that failed.
  [[nodiscard]] core::Result<Step> next() const;

  /// The next step is delayed, and W and V have to be put apart before it.
  [[nodiscard]] bool awaits_take_over() const;
  /// They are.
  core::Status take_over();

  /// The exchange of the next step starts. A delayed step is made by that.
  core::Status start();
  /// The exchange has ended, well or not. A synchronous step is made by that.
  core::Status finish(const core::Status& outcome);

  core::Status show();
  core::Status hide();

  /// Goes on from a state that was saved; also after a failure.
  core::Status restore(const Progress& progress);

  /// The error of the exchange that failed, if one did.
  [[nodiscard]] core::Status fault() const;
  [[nodiscard]] Progress progress() const { return {steps_, taken_over_}; }
  [[nodiscard]] bool in_flight() const { return in_flight_.has_value(); }
  [[nodiscard]] bool shown() const { return shown_; }
  /// Updates of W, from the start of the training: progress().steps, or one less while the exchange
  /// of a delayed step is under way.
  [[nodiscard]] std::uint64_t updates() const { return updates_; }

 private:
  [[nodiscard]] core::Status refusal(const std::string& tried) const;

  const std::uint64_t warm_up_;
  std::uint64_t steps_ = 0;
  std::uint64_t updates_ = 0;
  bool taken_over_ = false;
  bool shown_ = false;
  std::optional<Step> in_flight_;
  std::optional<core::Error> fault_;
};

}  // namespace fasthorovod::ops
