#include "ops/algorithms/pairwise_alltoall.h"

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {

Schedule pairwise_alltoall(const Shape& shape) {
  Schedule schedule;
  for (int step = 1; step < shape.size; ++step) {
    const int to = shape.neighbour(step);
    for (const ByteSpan& chunk : chunks_of(shape, block_part(shape, to))) {
      add_send(schedule, to, chunk, 0);
    }
    const int from = shape.neighbour(-step);
    for (const ByteSpan& chunk : chunks_of(shape, received_part(shape, from))) {
      add_receive(schedule, from, chunk, 0, Action::kCopy);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
