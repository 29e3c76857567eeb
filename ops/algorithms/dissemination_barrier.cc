#include "ops/algorithms/dissemination_barrier.h"

#include <cstdint>

namespace fasthorovod::ops {

Schedule dissemination_barrier(const Shape& shape) {
  Schedule schedule;
  std::uint32_t round = 0;
  for (int distance = 1; distance < shape.size; distance *= 2, ++round) {
    const std::uint32_t send = add_send(schedule, shape.neighbour(distance), {}, round);
    // All earlier rounds, not only the last: over several flows they may come in any order.
    for (std::uint32_t earlier = 0; earlier < round; ++earlier) {
      add_dependency(schedule, earlier, send);
    }
    add_receive(schedule, shape.neighbour(-distance), {}, round, Action::kCopy);
  }
  return schedule;
}

}  // namespace fasthorovod::ops
