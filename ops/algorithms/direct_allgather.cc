#include "ops/algorithms/direct_allgather.h"

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {

Schedule direct_allgather(const Shape& shape) {
  Schedule schedule;
  const auto own = chunks_of(shape, block_part(shape, shape.rank));
  for (int step = 1; step < shape.size; ++step) {
    for (const ByteSpan& chunk : own) add_send(schedule, shape.neighbour(step), chunk, 0);
    const int from = shape.neighbour(-step);
    for (const ByteSpan& chunk : chunks_of(shape, block_part(shape, from))) {
      add_receive(schedule, from, chunk, 0, Action::kCopy);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
