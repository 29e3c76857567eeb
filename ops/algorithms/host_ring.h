// The part of an all-reduce between hosts: for each stripe of each piece a ring all-reduce among
// the ranks that own it, one on each host, in the order of the hosts.
//
// Idea: ranks of one host reduce in shared memory, so that only one copy of the buffer leaves a
// host, and all its ranks share the sending. Each owner's area holds the sum of its host when the
// gate of a piece opens, and the sum of all when the piece is over. A rank that owns several
// stripes runs a ring for each. The order of additions is that of the hosts from where a segment
// starts, as in ring_allreduce.
//
// Steps: 2 (H - 1) for H hosts; pieces overlap. Bytes sent by a rank of host h: the sum over its
// stripes of
//
//     2 stripe - segment(h + 1) - segment(h + 2)
//
// with a stripe cut into H segments; so a host sends about 2 S (H - 1) / H in all, however many
// ranks it has.
//
// Source: M. Cho, U. Finkler, D. Kung and H. Hunter, "BlueConnect: Decomposing all-reduce for deep
// learning on heterogeneous network hierarchy", MLSys 2019 (levels); ring_allreduce (the ring).
#pragma once

#include <cstdint>

#include "ops/host_layout.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

/// This rank's schedule over its area, with a gate for each piece; chunks of at most `chunk_bytes`.
/// On one host nothing is sent, and there are gates alone.
Schedule host_ring(const HostLayout& layout, std::uint64_t chunk_bytes);

}  // namespace fasthorovod::ops
