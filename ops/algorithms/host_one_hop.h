// The part of a small all-reduce between hosts, in one hop: the owners of a stripe, one on each
// host, send each other what their hosts have of it, and each adds up all.
//
// Idea: for stripes so small that a hop costs more than the bytes. What comes is kept apart, behind
// what the layout takes of the area, until a rank has the stripe from all other hosts and its own
// has left; then it adds in the order of the hosts, so all owners get the same bits, and their
// mates copy them. Only sends wait for a gate: there is memory for what comes from the start, and
// so nothing parks.
//
// Steps: 1 for H hosts. Bytes sent by a rank: (H - 1) times its stripes.
//
// Source: one_hop_allreduce (the exchange); host_ring (the levels).
#pragma once

#include <cstdint>

#include "ops/host_layout.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

/// This rank's schedule over its area, of a layout of at most one piece, with its gate; chunks of
/// at most `chunk_bytes`.
Schedule host_one_hop(const HostLayout& layout, std::uint64_t chunk_bytes);

/// Bytes of scratch that it needs; the same on all ranks.
std::uint64_t host_one_hop_scratch(const HostLayout& layout);

}  // namespace fasthorovod::ops
