#include "transport/peer_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace fasthorovod::transport {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kDoublesAfter = std::chrono::milliseconds(250);

double believed(double rate, core::TimePoint last_busy, double fastest, core::TimePoint now) {
  if (rate == 0) return fastest;
  const Seconds rest = std::max<core::Duration>(now - last_busy, core::Duration::zero());
  return std::min(rate * std::exp2(rest / kDoublesAfter), fastest);
}

}  // namespace

void PeerRates::publish(FlowKey flow, double rate, core::TimePoint last_busy) {
  if (rate > 0) any_known_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  flows_[flow] = {rate, last_busy};
}

void PeerRates::forget(FlowKey flow) {
  const std::lock_guard lock(mutex_);
  flows_.erase(flow);
}

PeerRates::Comparison PeerRates::compare(FlowKey flow, core::TimePoint now) const {
  const std::lock_guard lock(mutex_);
  Comparison result;
  for (const auto& [key, entry] : flows_) result.fastest = std::max(result.fastest, entry.rate);
  for (const auto& [key, entry] : flows_) {
    const double rate = believed(entry.rate, entry.last_busy, result.fastest, now);
    result.sum += rate;
    if (key == flow) result.own = rate;
  }
  return result;
}

std::shared_ptr<PeerRates> RateBoard::of(int peer) {
  const std::lock_guard lock(mutex_);
  auto& rates = peers_[peer];
  if (!rates) rates = std::make_shared<PeerRates>();
  return rates;
}

}  // namespace fasthorovod::transport
