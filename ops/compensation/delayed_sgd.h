// OD-SGD on an engine: averages gradients over the ranks while the caller goes on, and makes the
// global update on the engine's worker, before the exchange counts as done. od_sgd.h says which
// call is for when.
//
// The parameters lie one after the other in three flat buffers, in one order on all ranks, so an
// exchange is one all-reduce in place. The caller fills `gradient` before start(); from then on
// until finish() the three buffers belong to the engine. They are kept alive by `owner` as long as
// anybody uses them, also when this object is gone.
//
// With one `name` in a process set there is one object on each rank. Thread: one at a time; waiting
// needs no lock of the caller's language.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/request.h"
#include "core/result.h"
#include "ops/compensation/od_sgd.h"
#include "ops/compensation/sgd_step.h"
#include "ops/engine.h"
#include "ops/handle.h"

namespace fasthorovod::ops {

class DelayedSgd final {
 public:
  /// Of one length.
  struct Memory {
    std::span<float> weights;     // W, once it is taken over
    std::span<float> velocity;    // V, once it is taken over
    std::span<float> gradient;    // this rank's own; after the exchange the average
    std::shared_ptr<void> owner;  // owners: this and the engine during an exchange
  };

  /// What a delayed step needs to know of one parameter.
  struct Parameter {
    std::span<float> local;  // the model's own memory
    float local_rate = 0;    // of the local step
    SgdSettings settings;    // of the global update, and of the local step but for its rate
  };

  DelayedSgd(Memory memory, std::string name, core::GroupId set, std::uint64_t warm_up);

  [[nodiscard]] OdSgd& state() { return state_; }
  [[nodiscard]] const OdSgd& state() const { return state_; }

  /// A synchronous step: starts the average of `gradient`. After finish() the caller makes the step
  /// with it.
  core::Status start_synchronous(Engine& engine);

  /// A delayed step: gives the parameters their local weights, then starts the average; the global
  /// update of `weights` and `velocity` follows on the worker. The parameters are those of the flat
  /// buffers, in their order.
  core::Status start_delayed(Engine& engine, std::span<const Parameter> parameters);

  /// Blocks until no exchange is under way or for `limit`. False: one still is.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) const;

  /// Waits for the exchange under way, if any. The error of the exchange that failed, now or
  /// before.
  core::Status finish();

 private:
  core::Status refusal(OdSgd::Step wanted) const;
  core::Status submit(Engine& engine, std::function<void()> then);

  const Memory memory_;
  const std::string name_;
  const core::GroupId set_;
  OdSgd state_;
  std::optional<Handle> handle_;  // of the exchange under way
};

}  // namespace fasthorovod::ops
