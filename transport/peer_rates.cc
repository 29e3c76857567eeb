#include "transport/peer_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

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

PeerRates::PeerRates(std::optional<int> first) {
  if (first) count_.emplace(*first);
}

void PeerRates::join(FlowKey flow, std::atomic<bool>& in_use, std::function<void()> taken_up) {
  const std::lock_guard lock(mutex_);
  flows_.push_back({.key = flow, .in_use = &in_use, .taken_up = std::move(taken_up)});
  share_out();
}

std::vector<PeerRates::Entry>::iterator PeerRates::find(FlowKey flow) {
  return std::ranges::find(flows_, flow, &Entry::key);
}

void PeerRates::publish(FlowKey flow, double rate, core::TimePoint last_busy) {
  if (rate > 0) any_known_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  const auto entry = find(flow);
  if (entry == flows_.end()) return;
  entry->rate = rate;
  entry->last_busy = last_busy;
}

void PeerRates::forget(FlowKey flow) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(flows_, [&](const Entry& entry) { return entry.key == flow; }) > 0) share_out();
}

void PeerRates::look(FlowKey flow, core::TimePoint now, std::uint64_t drained, bool dry) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(find(flow) - flows_.begin());
  if (index < in_use_) learn(now, meter_.look(index, now, drained, dry));
}

void PeerRates::rest(core::TimePoint now) {
  const std::lock_guard lock(mutex_);
  learn(now, meter_.rest(now));
}

void PeerRates::learn(core::TimePoint now, const std::optional<double>& goodput) {
  if (!goodput) return;
  goodput_ = *goodput;
  if (!count_) return;
  const int before = count_->in_use();
  count_->learn(now, *goodput, static_cast<int>(flows_.size()));
  if (count_->in_use() != before) share_out();
}

void PeerRates::share_out() {
  in_use_ = flows_.size();
  if (count_) in_use_ = std::min(in_use_, static_cast<std::size_t>(count_->in_use()));
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const bool was = flows_[i].in_use->exchange(i < in_use_);
    if (!was && i < in_use_ && flows_[i].taken_up) flows_[i].taken_up();
  }
  meter_.begin(in_use_);
}

PeerReport PeerRates::report() const {
  const std::lock_guard lock(mutex_);
  PeerReport report{.measures = count_.has_value(),
                    .waits_for_work = meter_.waits_for_work(),
                    .goodput = goodput_};
  for (const Entry& entry : flows_) report.flows.push_back({entry.rate, entry.in_use->load()});
  if (count_) {
    report.tries = count_->tries();
    report.tried = count_->experience();
  }
  return report;
}

PeerRates::Comparison PeerRates::compare(FlowKey flow, core::TimePoint now) const {
  const std::lock_guard lock(mutex_);
  Comparison result;
  const auto in_use = std::span(flows_).first(in_use_);
  for (const Entry& entry : in_use) result.fastest = std::max(result.fastest, entry.rate);
  for (const Entry& entry : in_use) {
    const double rate = believed(entry.rate, entry.last_busy, result.fastest, now);
    result.sum += rate;
    if (entry.key == flow) result.own = rate;
  }
  return result;
}

std::shared_ptr<PeerRates> RateBoard::of(int peer) {
  const std::lock_guard lock(mutex_);
  auto& rates = peers_[peer];
  if (!rates) rates = std::make_shared<PeerRates>(first_);
  return rates;
}

std::vector<PeerReport> RateBoard::reports() const {
  const std::lock_guard lock(mutex_);
  std::vector<PeerReport> reports;
  for (const auto& [peer, rates] : peers_) {
    reports.push_back(rates->report());
    reports.back().peer = peer;
  }
  return reports;
}

}  // namespace fasthorovod::transport
