#include "ops/algorithms/direct_gather.h"

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {

Schedule direct_gather(const Shape& shape) {
  Schedule schedule;
  if (shape.rank != shape.root) {
    const ByteSpan own{0, block_part(shape, shape.rank).bytes};
    for (const ByteSpan& chunk : chunks_of(shape, own)) add_send(schedule, shape.root, chunk, 0);
    return schedule;
  }
  for (int distance = 1; distance < shape.size; ++distance) {
    const int from = shape.neighbour(distance);
    for (const ByteSpan& chunk : chunks_of(shape, block_part(shape, from))) {
      add_receive(schedule, from, chunk, 0, Action::kCopy);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
