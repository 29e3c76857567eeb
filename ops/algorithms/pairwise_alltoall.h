// Pairwise all-to-all: every rank sends every other rank a block of its own.
//
// Idea: in step t rank r sends to the rank t places ahead and receives from the one t places
// behind, so that at any time each rank is the target of one other. Nothing waits for anything:
// links that are faster run ahead. Blocks sent lie in the source, blocks received in the buffer;
// the own block is kept without a schedule. Sizes are each pair's own affair, and may be zero.
//
// Steps: size - 1. Bytes sent by rank r: S - block(r), with S the bytes of its source and block(r)
// what it keeps; every byte travels once.
//
// Source: R. Thakur et al., "Optimization of collective communication operations in MPICH", IJHPCA
// 2005, section 4.4.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule pairwise_alltoall(const Shape& shape);

}  // namespace fasthorovod::ops
