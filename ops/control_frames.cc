#include "ops/control_frames.h"

#include <fmt/format.h>

#include <utility>

namespace fasthorovod::ops {

using transport::Arrival;
using transport::ChunkTicket;

ChunkTicket ControlFrames::keep(ControlFrame frame) {
  frames_.emplace(++last_id_, std::move(frame));
  return {last_id_, 0};
}

transport::OutgoingChunk ControlFrames::outgoing(const ChunkTicket& ticket) const {
  const ControlFrame& frame = frames_.at(ticket.operation);
  return {.header = frame.header, .payload = frame.payload, .ticket = ticket};
}

core::Result<Arrival> ControlFrames::arrive(int peer, const transport::FrameHeader& header) {
  const bool is_early = header.kind == transport::FrameKind::kEarly;
  if (header.payload_bytes > (is_early ? kMaxEarly : kMaxPayload)) {
    return core::Error{core::ErrorCode::kProtocol,
                       fmt::format("rank {} sent a frame of kind {} with {} bytes", peer,
                                   static_cast<int>(header.kind), header.payload_bytes),
                       peer};
  }
  return Arrival{Arrival::Kind::kAbsorb, {}, keep({peer, header, {}})};
}

void ControlFrames::absorb(const ChunkTicket& ticket, std::span<const std::byte> piece) {
  std::vector<std::byte>& payload = frames_.at(ticket.operation).payload;
  payload.insert(payload.end(), piece.begin(), piece.end());
}

ControlFrame ControlFrames::take(const ChunkTicket& ticket) {
  return std::move(frames_.extract(ticket.operation).mapped());
}

}  // namespace fasthorovod::ops
