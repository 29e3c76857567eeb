// One-hop all-reduce: every rank sends all it has to every other one, and adds up everything.
//
// Idea: for buffers so small that a hop costs more than the bytes. What comes is kept apart until a
// rank has a chunk from all and its own has left; then it adds in the order of the ranks, so all
// get the same bits, and the same as by two hops.
//
// Steps: 1. Bytes sent by a rank: (size - 1) S, with S the buffer's bytes.
//
// Source: a direct all-gather (direct_allgather.h) and a local reduction.
#pragma once

#include <cstdint>

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule one_hop_allreduce(const Shape& shape);

/// Bytes of scratch that it needs.
std::uint64_t one_hop_scratch(const Shape& shape);

}  // namespace fasthorovod::ops
