#include "transport/aux_seats.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::transport {
namespace {

core::TimePoint time_of(std::int64_t ticks) {
  return core::TimePoint(core::Duration(std::max<std::int64_t>(ticks, 0)));
}

}  // namespace

AuxSeats::AuxSeats(std::span<SharedFlow> shared, std::shared_ptr<RateBoard> rates,
                   std::function<void()> ring)
    : shared_(shared), rates_(std::move(rates)), ring_(std::move(ring)) {}

std::uint32_t AuxSeats::add(int peer) {
  const std::lock_guard lock(mutex_);
  ++by_peer_[peer];
  if (seats_.size() == shared_.size()) return kNoFlow;
  const auto flow = static_cast<std::uint32_t>(seats_.size());
  seats_.push_back({.peer = peer, .rates = rates_->of(peer)});
  seats_.back().rates->join(&shared_[flow], shared_[flow].in_use, ring_);
  return flow;
}

bool AuxSeats::knows(std::uint32_t flow) const {
  const std::lock_guard lock(mutex_);
  return flow == kNoFlow || flow < seats_.size();
}

bool AuxSeats::end(int peer) {
  const std::lock_guard lock(mutex_);
  return --by_peer_[peer] == 0;
}

void AuxSeats::give_up(std::uint32_t flow) {
  const std::lock_guard lock(mutex_);
  if (flow >= seats_.size()) return;
  if (const auto rates = std::exchange(seats_[flow].rates, nullptr)) rates->forget(&shared_[flow]);
}

void AuxSeats::close() {
  const std::lock_guard lock(mutex_);
  for (std::size_t flow = 0; flow < seats_.size(); ++flow) {
    const auto rates = std::exchange(seats_[flow].rates, nullptr);
    if (rates) rates->forget(&shared_[flow]);
  }
}

bool AuxSeats::leaves_next(std::uint32_t flow, const ChunkWork& work) {
  const std::lock_guard lock(mutex_);
  if (flow >= seats_.size() || !seats_[flow].rates) return false;
  Seat& seat = seats_[flow];
  const SharedFlow& shared = shared_[flow];
  if (!shared.in_use.load()) return true;
  const double rate = shared.rate.load(std::memory_order_relaxed);
  if (rate > 0) {
    const auto last_busy = time_of(shared.last_busy.load(std::memory_order_relaxed));
    seat.rates->publish(&shared, rate, last_busy);
  }
  if (!seat.rates->any_known()) return false;
  const core::TimePoint now = core::Clock::now();
  const PeerRates::Comparison rates = seat.rates->compare(&shared, now);
  return TailGuard::concerns(rates) &&
         seat.guard.leaves(work.backlog(seat.peer), shared.held.load(std::memory_order_relaxed),
                           rates, now);
}

std::shared_ptr<PeerRates> AuxSeats::rates_of(std::uint32_t flow) const {
  const std::lock_guard lock(mutex_);
  return flow < seats_.size() ? seats_[flow].rates : nullptr;
}

void AuxSeats::look(const AuxRequest& request) {
  const core::TimePoint at = std::min(time_of(request.at), core::Clock::now());
  if (const auto rates = rates_of(request.flow)) {
    rates->look(&shared_[request.flow], at, request.drained, request.dry != 0);
  }
}

void AuxSeats::rest(std::uint32_t flow) {
  if (const auto rates = rates_of(flow)) rates->rest(core::Clock::now());
}

}  // namespace fasthorovod::transport
