#include "ops/algorithms/direct_scatter.h"

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {

Schedule direct_scatter(const Shape& shape) {
  Schedule schedule;
  if (shape.rank != shape.root) {
    const ByteSpan own{0, block_part(shape, shape.rank).bytes};
    for (const ByteSpan& chunk : chunks_of(shape, own)) {
      add_receive(schedule, shape.root, chunk, 0, Action::kCopy);
    }
    return schedule;
  }
  for (int distance = 1; distance < shape.size; ++distance) {
    const int to = shape.neighbour(distance);
    for (const ByteSpan& chunk : chunks_of(shape, block_part(shape, to))) {
      add_send(schedule, to, chunk, 0);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
