// One flow of a lane: a socket to a peer with its two directions, and when it has ended.
//
// The directions end apart. When the peer ends its own between two frames, this side still sends
// what it owes, and the flow ends when nothing is left to send. When sending fails, what the peer
// sent before is still read, up to a chunk that nobody takes yet. Everything else (a reset, an end
// inside a frame, bytes that make no sense) ends both at once.
//
// Thread: owner (the lane).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "transport/chunk_work.h"
#include "transport/file_descriptor.h"
#include "transport/flow_receiver.h"
#include "transport/flow_seat.h"
#include "transport/flow_sender.h"
#include "transport/lane_counters.h"

namespace fasthorovod::transport {

class Flow final {
 public:
  /// Prepares the socket. `notsent_lowat` as in LaneOptions.
  /// `seat`: its place among all flows to the peer.
  Flow(int peer, FileDescriptor socket, int notsent_lowat, ChunkWork& work, LaneCounters& counters,
       std::unique_ptr<FlowSeat> seat);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  [[nodiscard]] int peer() const { return peer_; }
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] FileDescriptor release() { return std::move(socket_); }
  [[nodiscard]] FlowReceiver& receiver() { return receiver_; }

  /// It is one of those in use, no chunk is in hand, and the direction is open.
  [[nodiscard]] bool may_take() const {
    return seat_->in_use() && !sender_.busy() && !sender_.error();
  }
  /// Whether the socket would take a chunk now; if not, the flow wants to know when it would.
  bool ready();
  /// A slow flow near the end of the work, asked when it is ready: the next chunk is another's.
  [[nodiscard]] bool leaves_next_to_others() { return seat_->leaves_next(); }
  /// As of FlowSeat. Where nothing but the processors limits, what their caches hold leaves first.
  std::optional<OutgoingChunk> take() {
    return seat_->take(unlimited() ? TakeOrder::kFreshFirst : TakeOrder::kOldest);
  }
  void rest(core::TimePoint now) { seat_->rest(now); }
  /// As of FlowSender: what was started leaves with push().
  void start(const OutgoingChunk& chunk);
  [[nodiscard]] bool takes_more() const { return sender_.takes_more(); }
  [[nodiscard]] bool unlimited() const { return sender_.unlimited(); }
  [[nodiscard]] std::uint64_t joins_up_to() const { return sender_.joins_up_to(); }
  /// What was started is about to leave: the next chunk may be asked for already.
  void ask_ahead();
  void push();
  [[nodiscard]] bool drains_at_once() { return sender_.drains_at_once(); }
  /// There is no work for the peer: nothing to wait for.
  void forget_refusal() { refused_ = false; }

  /// Events of epoll on the socket.
  void on_events(std::uint32_t events);
  /// What epoll should watch now.
  [[nodiscard]] std::uint32_t interest() const;
  /// What epoll watches, by the owner's last word.
  std::uint32_t watched = 0;

  /// Sending failed: a parked chunk is offered once more, for what it waits for may be there.
  void offer_once_more();

  /// How the flow ended, if it has; `owes` when there may be more to send to the peer.
  [[nodiscard]] std::optional<FlowEnd> ended(bool owes) const;

 private:
  const int peer_;
  FileDescriptor socket_;
  const std::unique_ptr<FlowSeat> seat_;
  FlowSender sender_;
  FlowReceiver receiver_;
  bool refused_ = false;        // there was work, but the socket had no room
  bool offered_again_ = false;  // the parked chunk, after sending failed
};

}  // namespace fasthorovod::transport
