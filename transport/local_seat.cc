#include "transport/local_seat.h"

#include <utility>

namespace fasthorovod::transport {

LocalSeat::LocalSeat(int peer, ChunkWork& work, std::shared_ptr<PeerRates> rates)
    : peer_(peer), work_(work), rates_(std::move(rates)) {
  rates_->join(this, in_use_);
}

void LocalSeat::tell(double rate, core::TimePoint last_busy, std::uint64_t held) {
  held_ = held;
  if (!rated_ && rate == 0) return;
  rated_ = true;
  rates_->publish(this, rate, last_busy);
}

bool LocalSeat::leaves_next() {
  if (!rates_->any_known()) return false;
  const core::TimePoint now = core::Clock::now();
  const PeerRates::Comparison rates = rates_->compare(this, now);
  return TailGuard::concerns(rates) && guard_.leaves(work_.backlog(peer_), held_, rates, now);
}

SeatMaker local_seats(ChunkWork& work, std::shared_ptr<RateBoard> rates) {
  return [&work, rates = std::move(rates)](int peer, std::uint32_t /*number*/) {
    return std::make_unique<LocalSeat>(peer, work, rates->of(peer));
  };
}

}  // namespace fasthorovod::transport
