// The seat of a flow whose lane runs in the process of the chunks: what all flows to the peer do is
// in one PeerRates, and the flow decides by itself.
//
// Thread: owner (the lane).
#pragma once

#include <atomic>
#include <memory>

#include "transport/flow_seat.h"
#include "transport/peer_rates.h"
#include "transport/tail_guard.h"

namespace fasthorovod::transport {

class LocalSeat final : public FlowSeat {
 public:
  /// `rates`: of all flows to the peer; this one is among them while it lives. It and the rank's
  /// other flows own them together.
  LocalSeat(int peer, ChunkWork& work, std::shared_ptr<PeerRates> rates);
  ~LocalSeat() override { give_up(); }
  LocalSeat(const LocalSeat&) = delete;
  LocalSeat& operator=(const LocalSeat&) = delete;

  [[nodiscard]] bool in_use() const override { return in_use_; }
  void tell(double rate, core::TimePoint last_busy, std::uint64_t held) override;
  [[nodiscard]] bool leaves_next() override;
  std::optional<OutgoingChunk> take(TakeOrder order) override { return work_.take(peer_, order); }
  void look(core::TimePoint now, std::uint64_t drained, bool dry) override {
    rates_->look(this, now, drained, dry);
  }
  void rest(core::TimePoint now) override { rates_->rest(now); }
  void give_up() override { rates_->forget(this); }

 private:
  const int peer_;
  ChunkWork& work_;
  const std::shared_ptr<PeerRates> rates_;
  std::atomic<bool> in_use_{true};  // as rates_ says
  TailGuard guard_;
  bool rated_ = false;  // a rate was published
  std::uint64_t held_ = 0;
};

/// Seats at one board for all lanes of a rank that are threads.
SeatMaker local_seats(ChunkWork& work, std::shared_ptr<RateBoard> rates);

}  // namespace fasthorovod::transport
