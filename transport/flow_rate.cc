#include "transport/flow_rate.h"

#include <algorithm>
#include <chrono>

namespace fasthorovod::transport {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(4);
constexpr double kNewShare = 0.25;  // of a sample in what is believed

double rate_of(std::uint64_t bytes, core::Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return std::max(static_cast<double>(bytes) / std::max(seconds, 1e-9), FlowRate::kLeast);
}

}  // namespace

void FlowRate::observe(core::TimePoint now, std::uint64_t written, std::uint64_t waiting) {
  const std::uint64_t drained = written - std::min(waiting, written);
  if (!busy_) {
    if (waiting > 0) begin(now, drained);
    return;
  }
  last_busy_ = now;
  busy_ = waiting > 0;
  if (now - since_ < kInterval) return;
  if (settled_) take_sample(rate_of(drained - drained_then_, now - since_));
  settled_ = true;
  since_ = now;
  drained_then_ = drained;
}

void FlowRate::take_sample(double rate) {
  if (busy_) {
    rate_ = rate_ == 0 ? rate : rate_ + kNewShare * (rate - rate_);
  } else if (rate_ > 0) {
    rate_ = std::max(rate_, rate);
  }
}

void FlowRate::give(core::TimePoint now, std::uint64_t written) {
  if (!busy_) begin(now, written);
}

void FlowRate::begin(core::TimePoint now, std::uint64_t drained) {
  busy_ = true;
  settled_ = false;
  since_ = now;
  drained_then_ = drained;
}

}  // namespace fasthorovod::transport
