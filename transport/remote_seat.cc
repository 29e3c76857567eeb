#include "transport/remote_seat.h"

#include <utility>

namespace fasthorovod::transport {

RemoteSeat::RemoteSeat(int peer, std::uint32_t flow, SharedFlow* shared, RemoteWork& work)
    : peer_(peer), flow_(flow), shared_(shared), work_(work) {
  work_.begin(peer, flow);
}

bool RemoteSeat::in_use() const {
  return shared_ == nullptr || shared_->in_use.load() || work_.has_chunk(peer_, flow_);
}

void RemoteSeat::tell(double rate, core::TimePoint last_busy, std::uint64_t held) {
  if (shared_ == nullptr || rate == 0) return;
  shared_->held.store(held, std::memory_order_relaxed);
  shared_->last_busy.store(last_busy.time_since_epoch().count(), std::memory_order_relaxed);
  shared_->rate.store(rate, std::memory_order_relaxed);
}

void RemoteSeat::look(core::TimePoint now, std::uint64_t drained, bool dry) {
  if (shared_ != nullptr) work_.look({now, drained, dry}, flow_);
}

void RemoteSeat::give_up() {
  if (!std::exchange(gave_up_, true)) work_.give_up(peer_, flow_);
}

}  // namespace fasthorovod::transport
