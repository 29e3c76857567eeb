#include "ops/algorithms/ring_allreduce.h"

#include "ops/algorithms/cut.h"
#include "ops/algorithms/ring_pass.h"

namespace fasthorovod::ops {

Schedule ring_allreduce(const Shape& shape) {
  return ring_pass(
      shape, {.part = even_part, .steps = 2 * (shape.size - 1), .reduce_steps = shape.size - 1});
}

}  // namespace fasthorovod::ops
