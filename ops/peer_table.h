// What one rank keeps for each peer across operations: the chunks that may leave to it, in order,
// and whether it is gone. Peers are world ranks. Thread: the ChunkBoard's lock guards
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "core/result.h"
#include "transport/chunk_work.h"

namespace fasthorovod::ops {

class PeerTable final {
 public:
  void push(int peer, transport::ChunkTicket send) {
    peers_[peer].ready.push_back({send, ++pushed_});
  }
  /// Goes before all chunks.
  void push_urgent(int peer, transport::ChunkTicket send) {
    peers_[peer].urgent.push_back({send, ++pushed_});
  }
  /// It waited for something that has just been received.
  void push_fresh(int peer, transport::ChunkTicket send) {
    peers_[peer].fresh.push_back({send, ++pushed_});
  }
  [[nodiscard]] std::optional<transport::ChunkTicket> pop(int peer, transport::TakeOrder order);
  /// What pop() would give.
  [[nodiscard]] std::optional<transport::ChunkTicket> next(int peer,
                                                           transport::TakeOrder order) const;
  [[nodiscard]] bool has_ready(int peer) const;

  /// That peer leaves in good order, in these words; what its flows still hold comes.
  void mark_left(int peer, core::Error words);
  /// The words, or null.
  [[nodiscard]] const core::Error* left(int peer) const;

  /// Nothing comes from, or goes to, that peer any more; the first cause counts.
  void mark_gone(int peer, core::Error cause);
  /// Why the peer is gone, or null.
  [[nodiscard]] const core::Error* gone(int peer) const;

  /// A flow to that peer has ended.
  void count_end(int peer) { ++peers_[peer].ended; }
  /// How many have.
  [[nodiscard]] int ended(int peer) { return peers_[peer].ended; }
  /// How many must, for that peer to be gone, once it has left; none is the usual number.
  void expect_ends(int peer, int flows) { peers_[peer].expected = flows; }
  [[nodiscard]] std::optional<int> expected_ends(int peer) { return peers_[peer].expected; }

  void drop_ready();

 private:
  struct Ready {
    transport::ChunkTicket send;
    std::uint64_t number = 0;  // in the order of all pushes
  };
  struct Peer {
    std::deque<Ready> urgent;
    std::deque<Ready> ready;
    std::deque<Ready> fresh;
    std::optional<core::Error> left;
    std::optional<core::Error> gone;
    int ended = 0;  // flows
    std::optional<int> expected;
  };

  /// Where pop() takes from; null when nothing is there.
  template <typename OnePeer>
  [[nodiscard]] static auto* queue_of(OnePeer& peer, transport::TakeOrder order);

  std::unordered_map<int, Peer> peers_;
  std::uint64_t pushed_ = 0;
};

}  // namespace fasthorovod::ops
