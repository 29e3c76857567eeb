#include "ops/algorithms/one_hop_allreduce.h"

#include "ops/algorithms/cut.h"
#include "ops/algorithms/keep_and_add.h"

namespace fasthorovod::ops {

// A sum replaces what it was made of, so it waits for the own values to leave, too.
Schedule one_hop_allreduce(const Shape& shape) {
  Schedule schedule;
  const ByteSpan whole{0, shape.bytes()};
  for (const ByteSpan& chunk : chunks_of(shape, whole)) {
    const std::uint32_t sum = add_sum(schedule, shape, whole, chunk);
    for (int distance = 1; distance < shape.size; ++distance) {
      const std::uint32_t send = add_send(schedule, shape.neighbour(distance), chunk, 0);
      add_to_sum(schedule, schedule.sends[send], sum);
      add_kept_receive(schedule, shape, whole, chunk, shape.neighbour(-distance), sum);
    }
  }
  return schedule;
}

std::uint64_t one_hop_scratch(const Shape& shape) { return scratch_for(shape, {0, shape.bytes()}); }

}  // namespace fasthorovod::ops
