// Direct all-gather: every rank sends its block to every other one.
//
// Idea: one hop instead of a ring's P - 1, for blocks so small that a hop costs more than the
// bytes. Blocks may differ in size and may be empty. A small all-reduce is this, with the whole
// vector as a rank's block, and a sum over all blocks on each rank.
//
// Steps: 1. Bytes sent by rank r: (P - 1) block(r).
//
// Source: the linear algorithm of R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
// collective communication operations in MPICH", Int. J. of High Performance Computing Applications
// 2005.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule direct_allgather(const Shape& shape);

}  // namespace fasthorovod::ops
