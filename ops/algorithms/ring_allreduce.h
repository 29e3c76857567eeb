// Ring all-reduce: reduce-scatter, then all-gather, along one ring.
//
// Idea: the buffer is cut into `size` segments. Each segment starts at one rank and walks once
// round the ring, every rank adding its own values (reduce-scatter, size - 1 steps); the rank where
// it ends holds the result, which walks round once more and is copied (all-gather, size - 1 steps).
// The order of additions in a segment is the order of the ring from its start, so it depends on
// nothing but the rank numbers: all ranks get the same bits.
//
// Steps: 2 (size - 1). Bytes sent by rank r: 2 S - segment(r + 1) - segment(r + 2), with S the
// buffer's bytes; that is 2 (size - 1) / size x S when segments are equal, the least possible for
// links that carry both directions.
//
// Source: P. Patarasu and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 2009.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule ring_allreduce(const Shape& shape);

}  // namespace fasthorovod::ops
