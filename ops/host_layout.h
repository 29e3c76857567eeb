// How an all-reduce is shared out when several ranks sit on one host.
//
// The buffer is cut into pieces, and each piece into as many stripes as the largest host has ranks;
// among several hosts into one, where whoever runs it finds that better.
// Every host deals the stripes to its own ranks, however many they are: stripe s belongs, on each
// host, to the rank at place s mod (ranks of that host). The owners of a stripe reduce it first
// inside their hosts, then between them (algorithms/host_ring.h, host_one_hop.h).
//
// Pieces pass through a rank's area (shared memory) in slots: piece k uses slot k mod slots, and a
// stripe lies in its slot where it lies in its piece. Pure values; any thread. The same on all
// ranks but for `host` and `place`.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/schedule.h"

namespace fasthorovod::ops {

/// Pieces of one operation that can be under way at a time.
inline constexpr std::uint32_t kHostSlots = 4;

/// At most that many bytes on one host are reduced by all of its ranks: the additions cost less
/// than to wait for each other a second time.
inline constexpr std::uint64_t kSmallBytes = 32U << 10;

struct HostLayout {
  std::vector<std::vector<int>> hosts;  // positions in the group, by host; no host is empty
  int host = 0;                         // this rank's, an index of `hosts`
  int place = 0;                        // this rank's, among the ranks of its host
  std::uint64_t element_bytes = 1;
  std::uint64_t bytes = 0;        // of the buffer
  std::uint64_t piece_bytes = 0;  // whole elements; the last piece may be smaller
  std::uint32_t pieces = 0;       // 0 for an empty buffer
  std::uint32_t slots = 0;        // at most kHostSlots, at most `pieces`
  int stripes = 1;                // of each piece

  /// Where a piece lies in the buffer.
  [[nodiscard]] ByteSpan piece(std::uint32_t piece) const;
  /// Where a stripe of a piece lies in the buffer; as even as whole elements allow, may be empty.
  [[nodiscard]] ByteSpan stripe(std::uint32_t piece, int stripe) const;
  /// Where that stripe begins in an area.
  [[nodiscard]] std::uint64_t area_offset(std::uint32_t piece, int stripe) const;
  /// What an operation needs of each rank's arena.
  [[nodiscard]] std::uint64_t area_bytes() const { return slots * piece_bytes; }

  /// The position of the rank that reduces that stripe on a host.
  [[nodiscard]] int owner(int on_host, int stripe) const;
  /// True when this rank does, on its host.
  [[nodiscard]] bool owns(int stripe) const;
  /// What an algorithm between hosts is given, in which each host is one rank; no elements yet.
  [[nodiscard]] Shape shape_between_hosts(std::uint64_t chunk_bytes) const;
  /// True when there are other hosts.
  [[nodiscard]] bool crosses() const { return hosts.size() > 1; }
  /// True when all of its ranks reduce all of it, in one stripe.
  [[nodiscard]] bool is_small() const { return !crosses() && bytes <= kSmallBytes; }
};

/// The layout as the rank at `position` sees it; `hosts` names each position of the group once, in
/// an order that all ranks agree on. `largest_area`: the bytes that all ranks can give to one
/// operation; kHostSlots elements are needed in any case.
///
/// Pieces on one host: 128 KiB a stripe, so that a stripe stays in its core's cache between the
/// steps. Among several hosts: an eighth of the buffer, between 1 MiB and 8 MiB, so that the hosts'
/// own steps and the network overlap.
HostLayout lay_out(std::vector<std::vector<int>> hosts, int position, std::uint64_t elements,
                   std::uint64_t element_bytes, std::uint64_t largest_area);

}  // namespace fasthorovod::ops
