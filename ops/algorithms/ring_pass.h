// The walk round a ring that all-reduce and all-gather share.
//
// The buffer is cut into `size` parts. In step t rank r sends part (r - t) to its successor and
// receives part (r - 1 - t) from its predecessor (positions modulo size). What comes in step t is
// what leaves in step t + 1; nothing else waits, so each chunk travels at its own pace and hops
// overlap.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

struct RingPass {
  ByteSpan (*part)(const Shape&, int index) = nullptr;
  int steps = 0;
  int reduce_steps = 0;  // in the first steps what comes is reduced, afterwards it is copied
};

Schedule ring_pass(const Shape& shape, const RingPass& pass);

}  // namespace fasthorovod::ops
