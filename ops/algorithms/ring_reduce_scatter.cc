#include "ops/algorithms/ring_reduce_scatter.h"

#include "ops/algorithms/cut.h"
#include "ops/algorithms/ring_pass.h"

namespace fasthorovod::ops {
namespace {

// A walk that starts with part r at rank r ends at rank r - 1, which is where this block belongs.
ByteSpan block_before(const Shape& shape, int index) {
  return block_part(shape, (index + shape.size - 1) % shape.size);
}

}  // namespace

Schedule ring_reduce_scatter(const Shape& shape) {
  return ring_pass(shape,
                   {.part = block_before, .steps = shape.size - 1, .reduce_steps = shape.size - 1});
}

}  // namespace fasthorovod::ops
