// On the wire, by offset: magic 0, version 4, kind 6, epoch 8, group 12, sequence 16, payload bytes
// 24, transfer 32, hop 36, fingerprint 40, CRC32C of the 44 bytes before it 44.
#include "transport/frame.h"

#include <fmt/format.h>

#include <concepts>

#include "core/crc32c.h"

namespace fasthorovod::transport {
namespace {

constexpr std::uint32_t kMagic = 0x43564846;  // the bytes "FHVC"
constexpr std::uint16_t kVersion = 2;
constexpr std::size_t kSummedBytes = kFrameHeaderBytes - sizeof(std::uint32_t);

template <std::unsigned_integral T>
void put(std::span<std::byte> bytes, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <std::unsigned_integral T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(std::to_integer<T>(bytes[offset + i]) << (8 * i));
  }
  return value;
}

core::Error bad_header(std::string message) {
  return {core::ErrorCode::kProtocol, std::move(message), -1};
}

}  // namespace

FrameHeaderBytes encode(const FrameHeader& header) {
  FrameHeaderBytes bytes;
  put(bytes, 0, kMagic);
  put(bytes, 4, kVersion);
  put(bytes, 6, static_cast<std::uint16_t>(header.kind));
  put(bytes, 8, header.epoch);
  put(bytes, 12, header.group);
  put(bytes, 16, header.sequence);
  put(bytes, 24, header.payload_bytes);
  put(bytes, 32, header.transfer);
  put(bytes, 36, header.hop);
  put(bytes, 40, header.fingerprint);
  put(bytes, kSummedBytes, core::crc32c(std::span(bytes).first(kSummedBytes)));
  return bytes;
}

core::Result<FrameHeader> decode(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  if (const auto magic = get<std::uint32_t>(bytes, 0); magic != kMagic) {
    return bad_header(
        fmt::format("a frame header begins with {:#010x}, not with {:#010x}", magic, kMagic));
  }
  if (const auto version = get<std::uint16_t>(bytes, 4); version != kVersion) {
    return bad_header(fmt::format("a frame header has version {}, not {}", version, kVersion));
  }
  const auto sum = core::crc32c(bytes.first<kSummedBytes>());
  if (const auto claimed = get<std::uint32_t>(bytes, kSummedBytes); claimed != sum) {
    return bad_header(
        fmt::format("a frame header has the CRC {:#010x}, not {:#010x}", claimed, sum));
  }
  const auto kind = get<std::uint16_t>(bytes, 6);
  if (kind > static_cast<std::uint16_t>(kLastFrameKind)) {
    return bad_header(fmt::format("a frame header has the kind {}", kind));
  }
  return FrameHeader{.epoch = get<std::uint32_t>(bytes, 8),
                     .group = get<std::uint32_t>(bytes, 12),
                     .sequence = get<std::uint64_t>(bytes, 16),
                     .transfer = get<std::uint32_t>(bytes, 32),
                     .hop = get<std::uint32_t>(bytes, 36),
                     .payload_bytes = get<std::uint64_t>(bytes, 24),
                     .fingerprint = get<std::uint32_t>(bytes, 40),
                     .kind = static_cast<FrameKind>(kind)};
}

}  // namespace fasthorovod::transport
