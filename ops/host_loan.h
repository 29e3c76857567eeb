// Which of a rank's own buffers its mates read where they are, because they lie in its arena: then
// nothing of them is copied into an area first. Mates only ever read them, so whatever becomes of
// an operation, a rank's buffers are written by that rank alone.
//
// A rank that lends keeps the memory as it is until its mates have read what they need, and a mate
// looks after each reading whether the lender had failed by then (HostMate::still_lends): who has
// failed may use its memory for something else. Pure values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "ops/host_operation.h"

namespace fasthorovod::ops {

/// Where buffers begin in the arena of their rank.
struct HostLoan {
  static constexpr std::uint64_t kNothing = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t input = kNothing;   // read by the owners of its stripes
  std::uint64_t output = kNothing;  // what this rank owns of it is read by all others

  [[nodiscard]] bool lends_input() const { return input != kNothing; }
  [[nodiscard]] bool lends_output() const { return output != kNothing; }
  /// Whether that many bytes lie in an arena of `arena_bytes` from where it says.
  [[nodiscard]] bool fits(std::uint64_t bytes, std::uint64_t arena_bytes) const;
};

/// What a rank with that arena lends. Nothing of a small operation, whose ranks all read all of
/// each other's input. No output that may stay in caches (kLeastLentOutput), nor where the
/// operation crosses hosts: its values are final in the areas.
HostLoan loan_of(const HostOperation& operation, std::span<const std::byte> arena);

}  // namespace fasthorovod::ops
