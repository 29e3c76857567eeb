// Ring reduce-scatter: every rank ends with the reduction of its own block.
//
// Idea: the first half of the ring all-reduce. Block b starts at rank b + 1 and walks once round
// the ring, every rank adding its own values, so that it ends at rank b. Blocks may differ in size
// and may be empty. The buffer holds all blocks; those of other ranks are left as partial sums. The
// order of additions is the order of the ring from the start of the block.
//
// Steps: size - 1. Bytes sent by rank r: S - block(r), with S the buffer's bytes; (size - 1) / size
// x S when blocks are equal, the least possible.
//
// Source: the first half of P. Patarasu and X. Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", JPDC 2009.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule ring_reduce_scatter(const Shape& shape);

}  // namespace fasthorovod::ops
