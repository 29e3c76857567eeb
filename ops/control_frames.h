// The small frames that are no chunks (ready, announce, refuse): those that wait to leave, and
// those whose payload is coming in, as does that of an early chunk. Thread: the ChunkBoard's lock
// guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "ops/operation.h"
#include "transport/chunk_work.h"

namespace fasthorovod::ops {

struct ControlFrame {
  int peer = 0;  // world rank: it goes there, or came from there
  transport::FrameHeader header;
  std::vector<std::byte> payload;
};

class ControlFrames final {
 public:
  static constexpr std::uint64_t kMaxPayload = 1024;
  static constexpr std::uint64_t kMaxEarly = kEarlyBytes;

  /// True for the tickets that this class gives out.
  static bool owns(const transport::ChunkTicket& ticket) { return (ticket.operation & kMark) != 0; }

  /// Keeps a frame until sent(ticket).
  transport::ChunkTicket keep(ControlFrame frame);
  [[nodiscard]] transport::OutgoingChunk outgoing(const transport::ChunkTicket& ticket) const;
  void sent(const transport::ChunkTicket& ticket) { frames_.erase(ticket.operation); }

  /// A header came; kProtocol when it claims too much.
  core::Result<transport::Arrival> arrive(int peer, const transport::FrameHeader& header);
  void absorb(const transport::ChunkTicket& ticket, std::span<const std::byte> piece);
  ControlFrame take(const transport::ChunkTicket& ticket);

 private:
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

  std::uint64_t last_id_ = kMark;
  std::unordered_map<std::uint64_t, ControlFrame> frames_;
};

}  // namespace fasthorovod::ops
