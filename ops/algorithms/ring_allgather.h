// Ring all-gather: every rank's block walks once round the ring.
//
// Idea: rank r's block lies at its place in the result on rank r before the start. In each step a
// rank passes on the block that came last, beginning with its own. Blocks may differ in size and
// may be empty.
//
// Steps: size - 1. Bytes sent by rank r: S - block(r + 1), with S the bytes of the result: every
// rank sends all blocks but the one that began at its successor.
//
// Source: the second half of the ring all-reduce; R. Thakur et al., "Optimization of collective
// communication operations in MPICH", IJHPCA 2005, section 4.1.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule ring_allgather(const Shape& shape);

}  // namespace fasthorovod::ops
