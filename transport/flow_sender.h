// The sending direction of one flow: one chunk at a time, header and payload in one sendmsg. Small
// frames leave together with what follows them, since what a packet costs does not depend on its
// size.
//
// Thread: owner (the lane). It borrows the socket, the work and the counters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "transport/chunk_work.h"
#include "transport/flow_rate.h"
#include "transport/flow_speed.h"
#include "transport/lane_counters.h"

namespace fasthorovod::transport {

class FlowSender final {
 public:
  /// `speed`: what is believed of the network at first.
  FlowSender(int peer, int fd, int notsent_lowat, ChunkWork& work, LaneCounters& counters,
             FlowSpeed speed = {});

  /// A chunk is in hand: part of it may still have to leave.
  [[nodiscard]] bool busy() const { return !in_hand_.empty(); }
  /// Sending failed for good; a chunk that was in hand is lost.
  [[nodiscard]] const std::optional<core::Error>& error() const { return error_; }

  /// Whether the socket would take a chunk now. Asked before a chunk is taken, because sendmsg
  /// alone would accept a part of it, and the rest would be stuck here while faster flows run dry.
  /// After little was written it takes one without being asked, which would cost calls.
  [[nodiscard]] bool ready();

  /// How fast it drains, as of the last look by ready().
  [[nodiscard]] const FlowRate& rate() const { return rate_; }
  /// Bytes written that the peer's kernel had not acknowledged then.
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// Bytes acknowledged so far, as of then.
  [[nodiscard]] std::uint64_t drained() const { return total_ - std::min(held_, total_); }
  /// Next to nothing was left to send.
  [[nodiscard]] bool dry() const { return dry_; }

  /// Takes a chunk in hand; push() writes it. Only when not busy and without an error, or while it
  /// takes_more().
  void start(const OutgoingChunk& chunk);
  /// Another chunk should leave together with what was taken in hand since the last push(): that is
  /// little, or the network is no limit.
  [[nodiscard]] bool takes_more() const;
  /// The network is no limit, as far as this flow has shown of late.
  [[nodiscard]] bool unlimited() const { return speed_.unlimited(); }
  /// Up to how many bytes chunks are joined before they are taken in hand; 0: they are not.
  [[nodiscard]] std::uint64_t joins_up_to() const;
  /// The network is no limit, as far as this flow shows, so no other one would be faster.
  [[nodiscard]] bool drains_at_once();

  /// Writes more of what is in hand, as far as the socket and fairness allow.
  void push();

 private:
  struct Frame {
    OutgoingChunk chunk;
    FrameHeaderBytes header;
    [[nodiscard]] std::size_t bytes() const { return kFrameHeaderBytes + chunk.payload.size(); }
  };

  [[nodiscard]] std::size_t write_some(std::size_t most);
  void account(std::size_t count);
  void look();
  [[nodiscard]] std::uint64_t queued(unsigned long which) const;

  const int peer_;
  const int fd_;
  const int notsent_lowat_;
  ChunkWork& work_;
  LaneCounters& counters_;
  std::vector<Frame> in_hand_;  // kMostFrames at most
  std::size_t written_ = 0;     // of all that is in hand, headers and payloads
  std::size_t bytes_ = 0;       // of all that is in hand
  std::uint64_t total_ = 0;     // written since the start
  std::uint64_t empty_at_ = 0;  // of total_, when the peer was last known to have acknowledged all
  std::uint64_t held_ = 0;
  bool dry_ = true;
  FlowRate rate_;
  FlowSpeed speed_;
  std::optional<core::Error> error_;
};

}  // namespace fasthorovod::transport
