// Two-hop all-reduce: every rank adds up a share of the buffer for all.
//
// Idea: the buffer is cut into `size` segments, one a rank. Each rank sends the segments of others
// straight to their owners. An owner keeps what comes apart until it has a chunk from all, adds it
// up in the order of the ranks, and sends the sum to everybody. So results have the same bits on
// all ranks whatever comes first, and the first chunks are on their way back while others still
// come. Against the ring, hops are saved for memory: what all other ranks have of the own segment.
//
// Steps: 2. Bytes sent by rank r: S - segment(r) + (size - 1) segment(r), with S the buffer's
// bytes: 2 (size - 1) / size x S when segments are equal, as the ring.
//
// Source: pairwise exchange, as reduce-scatter and as all-gather, in R. Thakur, R. Rabenseifner and
// W. Gropp, "Optimization of collective communication operations in MPICH", Int. J. of High
// Performance Computing Applications 2005.
#pragma once

#include <cstdint>

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule two_hop_allreduce(const Shape& shape);

/// Bytes of scratch that it needs.
std::uint64_t two_hop_scratch(const Shape& shape);

}  // namespace fasthorovod::ops
