// The seat of a flow whose lane runs in an auxiliary process: the rank decides for it
// (aux_seats.h), when it asks for a chunk through RemoteWork.
//
// Thread: owner (the lane's).
#pragma once

#include "transport/aux_mailbox.h"
#include "transport/flow_seat.h"
#include "transport/remote_work.h"

namespace fasthorovod::transport {

class RemoteSeat final : public FlowSeat {
 public:
  /// `shared`: of the flow, or null where it has none. Both outlive this.
  RemoteSeat(int peer, std::uint32_t flow, SharedFlow* shared, RemoteWork& work);
  ~RemoteSeat() override { give_up(); }
  RemoteSeat(const RemoteSeat&) = delete;
  RemoteSeat& operator=(const RemoteSeat&) = delete;

  /// One that has been assigned a chunk is, whatever the rank says now.
  [[nodiscard]] bool in_use() const override;
  void tell(double rate, core::TimePoint last_busy, std::uint64_t held) override;
  [[nodiscard]] bool leaves_next() override { return work_.leaves_next(peer_, flow_); }
  /// In the rank's order.
  std::optional<OutgoingChunk> take(TakeOrder /*order*/) override {
    return work_.take_for(peer_, flow_);
  }
  void ask_ahead() override { work_.ask_ahead(peer_, flow_); }
  void look(core::TimePoint now, std::uint64_t drained, bool dry) override;
  void rest(core::TimePoint /*now*/) override {}  // the rank knows by itself
  void give_up() override;

 private:
  const int peer_;
  const std::uint32_t flow_;
  SharedFlow* const shared_;
  RemoteWork& work_;
  bool gave_up_ = false;
};

}  // namespace fasthorovod::transport
