// The header before every chunk on a data flow: 48 bytes, little endian, closed by a CRC32C over
// the rest.
//
// Any flow between two ranks may carry any frame: the header alone says where the bytes belong. The
// receiver trusts the payload only after the header's CRC, epoch and fingerprint matched what it
// expects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace fasthorovod::transport {

/// Wire values: never renumber, only append. A lane makes no difference between them.
enum class FrameKind : std::uint16_t {
  kData = 0,
  kReady = 1,     // the sender of this frame has started the operation; the payload says how
  kAnnounce = 2,  // a message waits to be received; the payload says of what size and tag
  kRefuse = 3,    // the message will not be moved; the payload says why
  kOpened = 4,    // the first pieces of the operation may come; `transfer` says how many
  kEarly = 5,     // a small chunk that leaves before the receiver has said that it is ready
};
inline constexpr FrameKind kLastFrameKind = FrameKind::kEarly;

struct FrameHeader {
  std::uint32_t epoch = 0;
  std::uint32_t group = 0;
  std::uint64_t sequence = 0;       // the operation: (group, sequence)
  std::uint32_t transfer = 0;       // which transfer of the receiving rank's schedule this chunk is
  std::uint32_t hop = 0;            // how many ranks this chunk has passed; for traces and checks
  std::uint64_t payload_bytes = 0;  // as encoded
  std::uint32_t fingerprint = 0;  // of the plan item; both sides must agree before data is touched
  FrameKind kind = FrameKind::kData;
};

inline constexpr std::size_t kFrameHeaderBytes = 48;
using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeaderBytes encode(const FrameHeader& header);

/// kProtocol when the magic, the version, the kind or the CRC is wrong.
core::Result<FrameHeader> decode(std::span<const std::byte, kFrameHeaderBytes> bytes);

}  // namespace fasthorovod::transport
