#include "transport/flow_rate.h"

#include <algorithm>
#include <chrono>

namespace fasthorovod::transport {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(4);
constexpr std::uint64_t kTelling = 16 << 10;
constexpr double kNewShare = 0.5;  // of a sample in what is believed

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
  const std::uint64_t bytes = drained - drained_then_;
  const double rate = rate_of(bytes, now - since_);
  if (waiting == 0) {
    busy_ = false;
    if (bytes >= kTelling) rate_ = std::max(rate_, rate);
  } else if (now - since_ >= kInterval) {
    rate_ = rate_ == 0 ? rate : rate_ + kNewShare * (rate - rate_);
    begin(now, drained);
  }
}

void FlowRate::give(core::TimePoint now, std::uint64_t written) {
  if (!busy_) begin(now, written);
}

void FlowRate::begin(core::TimePoint now, std::uint64_t drained) {
  busy_ = true;
  since_ = now;
  drained_then_ = drained;
}

}  // namespace fasthorovod::transport
