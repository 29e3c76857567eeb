// What a rank says of an operation of the ordered door that it has started, to each rank it
// exchanges data with: how much it will send and expects, and what it believes the operation to be.
// Immutable values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fasthorovod::ops {

struct ReadyNotice {
  std::uint32_t fingerprint = 0;  // travels in the header
  std::uint64_t sends = 0;        // bytes to the rank that gets the notice
  std::uint64_t expects = 0;      // bytes from it
  std::string description;        // for messages; cut when it is long
};

std::vector<std::byte> encode(const ReadyNotice& notice);
/// Nothing when the bytes make no sense.
std::optional<ReadyNotice> decode_ready(std::uint32_t fingerprint,
                                        std::span<const std::byte> bytes);

}  // namespace fasthorovod::ops
