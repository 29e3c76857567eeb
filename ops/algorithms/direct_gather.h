// Direct gather: every rank sends its block to the root.
//
// Idea: the root's link carries S in any case, so a tree would only add work elsewhere. A rank's
// block lies alone in its source; the root's buffer holds all blocks, its own in place. Blocks may
// differ in size and may be empty.
//
// Steps: 1. Bytes sent by rank r: block(r); the root sends nothing.
//
// Source: the linear algorithm of J. Pjesivac-Grbovic et al., "Performance analysis of MPI
// collective operations", Cluster Computing 2007.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule direct_gather(const Shape& shape);

}  // namespace fasthorovod::ops
