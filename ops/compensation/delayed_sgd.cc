#include "ops/compensation/delayed_sgd.h"

#include <fmt/format.h>

#include <bit>
#include <utility>
#include <vector>

#include "core/crc32c.h"

namespace fasthorovod::ops {

/// One exchange, from its start to its end. The worker writes it before the handle is done, the
/// caller reads it after.
struct DelayedSgd::Exchange {
  /// The settings of a part of the buffers, which lie one after the other.
  struct Run {
    std::size_t elements;
    SgdSettings settings;
  };

  Memory memory;
  OdSgd::Step kind;
  std::uint64_t step;
  std::vector<Run> runs;
  bool is_common = false;  // all ranks made the same step

  void mark() const;
  void follow();
};

namespace {

std::uint32_t add(std::uint32_t checksum, std::uint32_t value) {
  return core::crc32c(std::as_bytes(std::span(&value, 1)), checksum);
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

std::size_t elements_of(std::span<const DelayedSgd::Parameter> parameters) {
  std::size_t elements = 0;
  for (const DelayedSgd::Parameter& parameter : parameters) elements += parameter.local.size();
  return elements;
}

}  // namespace

void DelayedSgd::Exchange::mark() const {
  std::uint32_t checksum = add(0, static_cast<std::uint32_t>(kind));
  checksum = add(checksum, static_cast<std::uint32_t>(step));
  for (const Run& run : runs) {
    for (const float setting :
         {run.settings.rate, run.settings.momentum, run.settings.weight_decay}) {
      checksum = add(checksum, std::bit_cast<std::uint32_t>(setting));
    }
  }
  const std::span<float> bits = memory.gradient.last(kMarkElements);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<float>(checksum >> i & 1U);
  }
}

// On the worker. The average of equal bits is that bit, and the same on all ranks in any case.
void DelayedSgd::Exchange::follow() {
  for (const float bit : memory.gradient.last(kMarkElements)) {
    if (bit != 0 && bit != 1) return;
  }
  is_common = true;
  if (kind == OdSgd::Step::kSynchronous) return;
  std::size_t at = 0;
  for (const auto& [elements, settings] : runs) {
    sgd_step(memory.weights.subspan(at, elements), memory.velocity.subspan(at, elements),
             memory.gradient.subspan(at, elements), settings);
    at += elements;
  }
}

DelayedSgd::DelayedSgd(Memory memory, std::string name, core::GroupId set, std::uint64_t warm_up)
    : memory_(std::move(memory)), name_(std::move(name)), set_(set), state_(warm_up) {}

core::Status DelayedSgd::refusal(std::span<const Parameter> parameters) const {
  const std::size_t elements = elements_of(parameters);
  if (elements == memory_.weights.size() && !state_.awaits_take_over()) return {};
  return core::Error{
      core::ErrorCode::kInvalidArgument,
      fmt::format(
          "{}: {} elements in the parameters, {} in the buffers, global weights {}taken over",
          name_, elements, memory_.weights.size(), state_.awaits_take_over() ? "not " : "")};
}

core::Status DelayedSgd::start(Engine& engine, std::span<const Parameter> parameters) {
  const core::Result<OdSgd::Step> kind = state_.next();
  if (!kind) return kind.error();
  if (core::Status refused = refusal(parameters); !refused) return refused;
  exchange_ = std::make_shared<Exchange>(Exchange{memory_, *kind, state_.updates() + 1, {}});
  for (const Parameter& parameter : parameters) {
    exchange_->runs.push_back({parameter.local.size(), parameter.settings});
  }
  exchange_->mark();
  // Before the exchange: it writes over this rank's gradient, and the update over the weights.
  if (*kind == OdSgd::Step::kDelayed) step_locally(memory_, parameters);
  return submit(engine, [exchange = exchange_] { exchange->follow(); });
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
  if (outcome && !exchange_->is_common) {
    outcome = core::Error{
        core::ErrorCode::kMismatch,
        fmt::format("{}: the ranks made different steps; this rank made step {}, a {} one. The "
                    "number of steps, learning rates, momentum and weight decay have to be the "
                    "same on all ranks",
                    name_, exchange_->step,
                    exchange_->kind == OdSgd::Step::kDelayed ? "delayed" : "synchronous")};
  }
  exchange_.reset();
  if (core::Status ended = state_.finish(outcome); !ended) return ended;
  return outcome;
}

}  // namespace fasthorovod::ops
