#include "ops/compensation/delayed_sgd.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

namespace fasthorovod::ops {
namespace {

/// The settings of a global update: those of the parameters, which lie one after the other.
struct Run {
  std::size_t elements;
  SgdSettings settings;
};

void update_globally(const DelayedSgd::Memory& memory, const std::vector<Run>& runs) {
  std::size_t at = 0;
  for (const auto& [elements, settings] : runs) {
    sgd_step(memory.weights.subspan(at, elements), memory.velocity.subspan(at, elements),
             memory.gradient.subspan(at, elements), settings);
    at += elements;
  }
}

void step_locally(const DelayedSgd::Memory& memory,
                  std::span<const DelayedSgd::Parameter> parameters) {
  std::size_t at = 0;
  for (const DelayedSgd::Parameter& parameter : parameters) {
    const std::size_t elements = parameter.local.size();
    SgdSettings settings = parameter.settings;
    settings.rate = parameter.local_rate;
    sgd_preview(parameter.local, memory.weights.subspan(at, elements),
                memory.velocity.subspan(at, elements), memory.gradient.subspan(at, elements),
                settings);
    at += elements;
  }
}

}  // namespace

DelayedSgd::DelayedSgd(Memory memory, std::string name, core::GroupId set, std::uint64_t warm_up)
    : memory_(std::move(memory)), name_(std::move(name)), set_(set), state_(warm_up) {}

core::Status DelayedSgd::refusal(OdSgd::Step wanted) const {
  const core::Result<OdSgd::Step> step = state_.next();
  if (!step) return step.error();
  if (*step == wanted) return {};
  return core::Error{core::ErrorCode::kInvalidArgument,
                     fmt::format("{}: the next step is {}", name_,
                                 *step == OdSgd::Step::kDelayed ? "delayed" : "synchronous")};
}

core::Status DelayedSgd::start_synchronous(Engine& engine) {
  if (core::Status refused = refusal(OdSgd::Step::kSynchronous); !refused) return refused;
  return submit(engine, nullptr);
}

core::Status DelayedSgd::start_delayed(Engine& engine, std::span<const Parameter> parameters) {
  if (core::Status refused = refusal(OdSgd::Step::kDelayed); !refused) return refused;
  std::vector<Run> runs;
  std::size_t elements = 0;
  for (const Parameter& parameter : parameters) {
    runs.push_back({parameter.local.size(), parameter.settings});
    elements += parameter.local.size();
  }
  if (elements != memory_.weights.size() || state_.awaits_take_over()) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       fmt::format("{}: {} elements in the parameters, {} in the buffers, global "
                                   "weights {}taken over",
                                   name_, elements, memory_.weights.size(),
                                   state_.awaits_take_over() ? "not " : "")};
  }
  // Before the exchange: it writes over this rank's gradient, and the update over the weights.
  step_locally(memory_, parameters);
  return submit(engine,
                [memory = memory_, runs = std::move(runs)] { update_globally(memory, runs); });
}

core::Status DelayedSgd::submit(Engine& engine, std::function<void()> then) {
  Submission submission;
  submission.request.name = name_;
  submission.request.group = set_;
  submission.request.reduction = core::Reduction::kAverage;
  submission.request.shape = {static_cast<std::int64_t>(memory_.gradient.size())};
  submission.input = submission.output = memory_.gradient.data();
  submission.keep_alive = memory_.owner;
  submission.then = std::move(then);
  if (core::Status started = state_.start(); !started) return started;
  core::Result<Handle> handle = engine.submit(std::move(submission));
  if (!handle) {
    // An exchange that could not start is one that failed: the model may have made its step.
    if (core::Status ended = state_.finish(handle.error()); !ended) return ended;
    return handle.error();
  }
  handle_ = *std::move(handle);
  return {};
}

bool DelayedSgd::wait_for(std::chrono::milliseconds limit) const {
  return !handle_ || handle_->wait_for(limit);
}

core::Status DelayedSgd::finish() {
  if (!handle_) return state_.fault();
  core::Status outcome = handle_->wait();
  handle_.reset();
  if (core::Status ended = state_.finish(outcome); !ended) return ended;
  return outcome;
}

}  // namespace fasthorovod::ops
