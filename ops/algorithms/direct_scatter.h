// Direct scatter: the root sends every rank its block.
//
// Idea: the direct gather backwards. The root's source holds all blocks; the buffer of any other
// rank is its block alone. The root keeps its own block without a schedule. Blocks may differ in
// size and may be empty.
//
// Steps: 1. Bytes sent by the root: S - block(root); the others send nothing.
//
// Source: the linear algorithm of J. Pjesivac-Grbovic et al., "Performance analysis of MPI
// collective operations", Cluster Computing 2007.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule direct_scatter(const Shape& shape);

}  // namespace fasthorovod::ops
