// OD-SGD on an engine: averages gradients over the ranks while the caller goes on, and makes the
// global update on the engine's worker, before the exchange counts as done. od_sgd.h says which
// call is for when.
//
// The parameters lie one after the other in three flat buffers, in one order on all ranks, so an
// exchange is one all-reduce in place. The caller fills `gradient` before start(); from then on
// until finish() the three buffers belong to the engine. They are kept alive by `owner` as long as
// anybody uses them, also when this object is gone.
//
// Behind the gradient travels a *mark*: the bits, as 0 and 1, of a checksum of which step this is
// and with which settings. Where the average of a bit is neither, ranks made different steps; then
// no rank makes the update, and all get the same kind of error, instead of global weights that
// differ from then on.
//
// With one `name` in a process set there is one object on each rank. Thread: one at a time; waiting
// needs no lock of the caller's language.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/request.h"
#include "core/result.h"
#include "ops/compensation/od_sgd.h"
#include "ops/compensation/sgd_step.h"
#include "ops/engine.h"
#include "ops/handle.h"

namespace fasthorovod::ops {

class DelayedSgd final {
 public:
  /// How many elements `gradient` has beyond those of the others.
  static constexpr std::size_t kMarkElements = 32;

  struct Memory {
    std::span<float> weights;     // W, once it is taken over
    std::span<float> velocity;    // V, once it is taken over
    std::span<float> gradient;    // this rank's own; after the exchange the average; then the mark
    std::shared_ptr<void> owner;  // owners: this and the engine during an exchange
  };

  /// What a step needs to know of one parameter.
  struct Parameter {
    std::span<float> local;  // the model's own memory
    float local_rate = 0;    // of the local step
    SgdSettings settings;    // of the global update, and of the local step but for its rate
  };

  DelayedSgd(Memory memory, std::string name, core::GroupId set, std::uint64_t warm_up);

  [[nodiscard]] OdSgd& state() { return state_; }
  [[nodiscard]] const OdSgd& state() const { return state_; }

  /// Starts the exchange of the next step, of the kind that state().next() tells. The parameters
  /// are those of the flat buffers, in their order.
  ///
  /// Synchronous: starts the average of `gradient`; after finish() the caller makes the step with
  /// it. Delayed: gives the parameters their local weights, then starts the average; the global
  /// update of `weights` and `velocity` follows on the worker.
  core::Status start(Engine& engine, std::span<const Parameter> parameters);

  /// Blocks until no exchange is under way or for `limit`. False: one still is.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) const;

  /// Waits for the exchange under way, if any. The error of the exchange that failed, now or
  /// before; kMismatch: the ranks made different steps.
  core::Status finish();

 private:
  struct Exchange;

  core::Status refusal(std::span<const Parameter> parameters) const;
  core::Status submit(Engine& engine, std::function<void()> then);

  const Memory memory_;
  const std::string name_;
  const core::GroupId set_;
  OdSgd state_;
  std::optional<Handle> handle_;        // of the exchange under way
  std::shared_ptr<Exchange> exchange_;  // the same; owners: this and the engine
};

}  // namespace fasthorovod::ops
