// Runs one operation's schedule: which of its sends may leave, what may come, and when all is over.
//
// A rank of the ordered door, or the receiver of a message, gets its chunks only once it has said
// that it is ready. A piece that has a gate moves once the gate is open here and, beyond the first
// Schedule::slots pieces, the peer has said that its own is. An operation that failed ends when no
// lane touches its memory any more.
//
// Pure bookkeeping: it moves no byte and touches no data. Peers are world ranks here. Thread: the
// ChunkBoard's lock guards all but absorb() and add_up(), which touch the operation's memory only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ops/operation.h"
#include "ops/piece_gates.h"
#include "ops/ready_notice.h"
#include "transport/chunk_work.h"

namespace fasthorovod::ops {

class ScheduleRunner final {
 public:
  /// Takes an operation whose schedule fits (see fits()).
  ScheduleRunner(std::uint64_t id, Operation operation);

  /// kInternal when a span leaves the buffer or cuts an element, a peer is no member, or gated
  /// transfers are not in the order of their pieces.
  static core::Status fits(const Operation& operation);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const Operation& operation() const { return operation_; }
  Operation release() && { return std::move(operation_); }

  /// What open_gates() did.
  struct Opened {
    std::vector<std::uint32_t> over;  // pieces of which nothing is left
    std::vector<int> peers;           // that must hear of it, and that so many are open:
    std::uint32_t count = 0;
  };

  /// Calls visit(peer, send index) for each send that may go at once, in order.
  template <typename Visitor>
  void for_each_initial(Visitor visit) const {
    for (std::uint32_t i = 0; i < sends_.size(); ++i) {
      if (may_go(i)) visit(peer_of_send(i), i);
    }
  }

  /// The peers that must hear that this rank is ready, each with what to tell it.
  template <typename Visitor>
  void for_each_notice(Visitor visit) const {
    for (const PeerState& state : peers_) {
      if (owes_notice(state)) visit(state.peer, notice_to(state));
    }
  }

  /// True when a peer's notice fits this operation as this rank sees it.
  [[nodiscard]] bool agrees(int peer, const ReadyNotice& notice) const;

  /// A peer is ready. Calls visit(peer, send index) for each send that may go now.
  template <typename Visitor>
  void peer_ready(int peer, Visitor visit) {
    if (find_peer(peer) == nullptr || find_peer(peer)->ready) return;
    peer_state(peer).ready = true;
    if (operation_.early) return;  // nothing waited for it
    for (std::uint32_t i = 0; i < sends_.size(); ++i) {
      if (peer_of_send(i) == peer && may_go(i)) visit(peer, i);
    }
  }

  /// Pieces [0, count) may move here. Calls visit(peer, send index) for each send that may go now.
  template <typename Visitor>
  Opened open_gates(std::uint32_t count, Visitor visit) {
    const PieceGates::Range opened = gates_.open(count);
    visit_sends(opened, visit);
    return count_opened(opened);
  }

  /// Pieces [0, count) may move at a peer. Calls visit(peer, send index) for each send that may go
  /// now. False when that makes no sense.
  template <typename Visitor>
  [[nodiscard]] bool peer_opened(int peer, std::uint32_t count, Visitor visit) {
    if (find_peer(peer) == nullptr || count > gates_.count()) return false;
    std::uint32_t& opened = peer_state(peer).opened;
    const PieceGates::Range more{opened, std::max(opened, count)};
    opened = more.last;
    visit_sends(more, [&](int to, std::uint32_t send) {
      if (to == peer) visit(to, send);
    });
    return true;
  }

  /// True once, for an operation that was held.
  [[nodiscard]] bool release_hold() { return std::exchange(operation_.held, false); }

  /// World ranks that are not ready.
  [[nodiscard]] std::vector<int> awaited() const;

  /// No further chunk leaves or comes; the first error stands.
  void fail(core::Error error);
  [[nodiscard]] const std::optional<core::Error>& failure() const { return failure_; }

  /// The header of a frame of this operation.
  [[nodiscard]] transport::FrameHeader header(transport::FrameKind kind) const;

  /// The chunk that send `index` puts on the wire.
  [[nodiscard]] transport::OutgoingChunk outgoing(std::uint32_t index);
  /// Adds send `next` to what is on its way to the same peer, if it goes on where that ends, in the
  /// buffer and in the schedule, and both together have at most so many bytes.
  [[nodiscard]] bool join(transport::OutgoingChunk& chunk, std::uint32_t next, std::uint64_t most);
  /// The sends, and receives, that a ticket stands for: part 0 is its own.
  [[nodiscard]] std::uint32_t send_of(const transport::ChunkTicket& ticket,
                                      std::uint32_t part) const;
  [[nodiscard]] std::uint32_t receive_of(const transport::ChunkTicket& ticket,
                                         std::uint32_t part) const;
  /// Send `index` is complete; the piece that ended with it, or none.
  [[nodiscard]] std::vector<std::uint32_t> sent(std::uint32_t index);

  /// Checks the header of a chunk, or of several joined ones, that came from `peer` and says where
  /// it goes; it is then expected no more. One whose gate is closed parks, unless the schedule
  /// receives early.
  core::Result<transport::Arrival> arrive(int peer, const transport::FrameHeader& header);

  /// Send, or receive, `index` is complete but for counting it: the sum for which it was the last,
  /// or none. That sum is to be made before it is counted by sent() or received().
  [[nodiscard]] std::optional<std::uint32_t> due_with_send(std::uint32_t index) {
    return due(operation_.schedule.sends[index].sum);
  }
  [[nodiscard]] std::optional<std::uint32_t> due_with_receive(std::uint32_t index) {
    return due(operation_.schedule.receives[index].sum);
  }
  /// Makes a sum. Without the board's lock.
  void add_up(std::uint32_t sum) const;

  /// Reduces a piece of what came from the chunk of receive `index` on. Without the board's lock.
  void absorb(std::uint32_t index, std::uint64_t offset, std::span<const std::byte> piece) const;

  /// The chunk of receive `index` is in place. Calls visit(peer, send index) for each send that may
  /// go now. The piece that ended with it, or none.
  template <typename Visitor>
  [[nodiscard]] std::vector<std::uint32_t> received(std::uint32_t index, Visitor visit) {
    for (const std::uint32_t send : operation_.schedule.receives[index].unlocks) {
      --sends_[send].waits_for;
      if (may_go(send)) visit(peer_of_send(send), send);
    }
    return count_received(index);
  }

  /// Operation::piece_done has returned for so many pieces; until then the operation can not end.
  void told(std::size_t pieces) { in_hand_ -= pieces; }

  /// All flows to that peer have ended: no lane works for it any more.
  void abandon(int peer);

  [[nodiscard]] bool done() const { return in_hand_ == 0 && (failure_ || remaining_ == 0); }

  [[nodiscard]] std::uint64_t bytes_of_send(std::uint32_t index) const {
    return operation_.schedule.sends[index].span.bytes;
  }
  /// Bytes for that world rank that are not part of a chunk that was taken by outgoing().
  [[nodiscard]] std::uint64_t untaken(int peer) const;

  /// True while something is expected from, or owed to, that world rank.
  [[nodiscard]] bool needs(int peer) const;

 private:
  struct SendState {
    std::uint32_t transfer = 0;   // its number among the sends to its peer
    std::uint32_t waits_for = 0;  // receives still to come
  };
  struct PeerState {
    int peer = 0;                      // world rank
    std::uint64_t remaining = 0;       // sends and receives not complete yet
    std::uint64_t in_hand = 0;         // of those, what a lane works on just now
    std::uint64_t bytes_sent = 0;      // in the schedule
    std::uint64_t bytes_taken = 0;     // of those
    std::uint64_t bytes_received = 0;  // in the schedule
    bool ready = false;
    std::uint32_t opened = 0;             // pieces that may move there
    std::vector<std::uint32_t> sends{};   // by transfer number, and so in order
    std::vector<std::uint32_t> receives;  // likewise
  };

  /// Calls visit(peer, send index) for each send of these pieces that may go.
  template <typename Visitor>
  void visit_sends(PieceGates::Range pieces, Visitor visit) const {
    const std::vector<Send>& sends = operation_.schedule.sends;
    const auto first = std::ranges::lower_bound(sends, pieces.first, {}, &Send::piece);
    for (auto i = static_cast<std::uint32_t>(first - sends.begin());
         i < sends.size() && sends[i].piece < pieces.last; ++i) {
      if (may_go(i)) visit(peer_of_send(i), i);
    }
  }

  [[nodiscard]] int world_rank(int position) const;
  [[nodiscard]] int peer_of_send(std::uint32_t index) const;
  [[nodiscard]] const PeerState* find_peer(int peer) const;
  PeerState& peer_state(int peer);
  [[nodiscard]] bool may_go(std::uint32_t send) const;
  [[nodiscard]] bool owes_notice(const PeerState& state) const;
  [[nodiscard]] ReadyNotice notice_to(const PeerState& state) const;
  [[nodiscard]] core::Error refusal(int peer, const std::string& reason) const;
  [[nodiscard]] core::Status check(const transport::FrameHeader& header,
                                   const transport::ChunkTicket& ticket) const;
  [[nodiscard]] std::uint32_t joined(const transport::FrameHeader& header,
                                     const PeerState& state) const;
  [[nodiscard]] std::vector<std::uint32_t> count_received(std::uint32_t index);
  [[nodiscard]] std::vector<std::uint32_t> count_transfer(int peer, std::uint32_t piece);
  [[nodiscard]] std::optional<std::uint32_t> due(std::uint32_t sum);
  void take_in_hand(int peer);
  [[nodiscard]] Opened count_opened(PieceGates::Range opened);

  std::uint64_t id_;
  Operation operation_;
  PieceGates gates_;
  std::uint64_t remaining_ = 0;  // transfers, and gates to open
  std::uint64_t in_hand_ = 0;    // chunks that a lane sends or receives, pieces told of just now
  std::optional<core::Error> failure_;
  std::vector<SendState> sends_;
  std::vector<bool> arrived_;             // by receive
  std::vector<std::uint32_t> sums_left_;  // by sum: transfers still to come
  std::vector<PeerState> peers_;
};

}  // namespace fasthorovod::ops
