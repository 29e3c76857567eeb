// The sending direction of one flow: at most one chunk at a time, header and payload in one
// sendmsg.
//
// Thread: owner (the lane). It borrows the socket, the work and the counters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/result.h"
#include "transport/chunk_work.h"
#include "transport/flow_rate.h"
#include "transport/lane_counters.h"

namespace fasthorovod::transport {

class FlowSender final {
 public:
  FlowSender(int peer, int fd, int notsent_lowat, ChunkWork& work, LaneCounters& counters);

  /// A chunk is in hand: part of it may still have to leave.
  [[nodiscard]] bool busy() const { return chunk_.has_value(); }
  /// Sending failed for good; a chunk that was in hand is lost.
  [[nodiscard]] const std::optional<core::Error>& error() const { return error_; }

  /// Whether the socket would take a chunk now. Asked before a chunk is taken, because sendmsg
  /// alone would accept a part of it, and the rest would be stuck here while faster flows run dry.
  [[nodiscard]] bool ready();

  /// How fast it drains, as of the last look by ready().
  [[nodiscard]] const FlowRate& rate() const { return rate_; }
  /// Bytes written that the peer's kernel had not acknowledged then.
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// Bytes acknowledged so far, as of then.
  [[nodiscard]] std::uint64_t drained() const { return total_ - std::min(held_, total_); }
  /// All bytes written had left.
  [[nodiscard]] bool dry() const { return unsent_ == 0; }

  /// Takes a chunk in hand and writes what the socket accepts. Only when not busy and without an
  /// error.
  void start(const OutgoingChunk& chunk);

  /// Writes more of the chunk in hand, as far as the socket and fairness allow.
  void push();

 private:
  [[nodiscard]] std::size_t write_some(std::size_t most);
  void finish();
  [[nodiscard]] std::uint64_t queued(unsigned long which) const;

  const int peer_;
  const int fd_;
  const int notsent_lowat_;
  ChunkWork& work_;
  LaneCounters& counters_;
  std::optional<OutgoingChunk> chunk_;
  FrameHeaderBytes header_{};
  std::size_t written_ = 0;  // of header and payload together
  std::uint64_t total_ = 0;  // written since the start
  std::uint64_t held_ = 0;
  std::uint64_t unsent_ = 0;
  FlowRate rate_;
  std::optional<core::Error> error_;
};

}  // namespace fasthorovod::transport
