// Which of a rank's own buffers its mates use where they are, because they lie in its arena. An
// input is read there, so nothing of it is copied into an area first. Into an output each mate
// writes what it has reduced, so nothing of it is copied out: a processor reads what it wrote
// itself much sooner than what another one has in its cache.
//
// A rank that lends keeps the memory as it is until its mates are through with it, and a mate looks
// after each reading whether the lender had failed by then (HostMate::still_lends): who has failed
// may use its memory for something else. Nobody may still write to it then. So a mate says that it
// writes, looks whether the lender still lends, writes, and says that it is through; who fails says
// so, looks who writes, and has not failed before nobody does. A mate may be stopped meanwhile, for
// as long as the world waits for it; when the world ends, the lender takes the memory back by
// mapping other memory in its place (transport/private_pages.h), which goes by whole pages. What a
// lent output has of other pages is copied out. Pure values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "ops/host_operation.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

/// Where buffers begin in the arena of their rank.
struct HostLoan {
  static constexpr std::uint64_t kNothing = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t input = kNothing;   // read by the owners of its stripes
  std::uint64_t output = kNothing;  // written by the owners of its stripes

  [[nodiscard]] bool lends_input() const { return input != kNothing; }
  [[nodiscard]] bool lends_output() const { return output != kNothing; }
  [[nodiscard]] bool lends_all() const { return lends_input() && lends_output(); }
  /// The whole pages of a lent output of that many bytes: where they begin in it, and how many
  /// bytes they are.
  [[nodiscard]] ByteSpan pages(std::uint64_t bytes) const;
  /// Whether that many bytes lie in an arena of `arena_bytes` from where it says.
  [[nodiscard]] bool fits(std::uint64_t bytes, std::uint64_t arena_bytes) const;
};

/// What a rank with that arena lends. Nothing of a small operation, whose ranks all read all of
/// each other's input; no output where the operation crosses hosts: its values are final in the
/// areas.
HostLoan loan_of(const HostOperation& operation, std::span<const std::byte> arena);

}  // namespace fasthorovod::ops
