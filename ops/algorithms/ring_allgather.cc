#include "ops/algorithms/ring_allgather.h"

#include "ops/algorithms/cut.h"
#include "ops/algorithms/ring_pass.h"

namespace fasthorovod::ops {

Schedule ring_allgather(const Shape& shape) {
  return ring_pass(shape, {.part = block_part, .steps = shape.size - 1, .reduce_steps = 0});
}

}  // namespace fasthorovod::ops
