// CRC-32C (Castagnoli polynomial), the checksum of frame headers and payloads. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fasthorovod::core {

/// The checksum of `bytes`; `previous` is that of the bytes before them, so a frame may be summed
/// in parts: crc32c(b, crc32c(a)) is the checksum of a followed by b. Uses the processor's
/// instruction when it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0) noexcept;

/// The two implementations, so that tests can compare them.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t previous) noexcept;
/// Only when has_crc32c_instruction().
std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                    std::uint32_t previous) noexcept;
bool has_crc32c_instruction() noexcept;

}  // namespace fasthorovod::core
