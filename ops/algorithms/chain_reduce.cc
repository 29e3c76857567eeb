#include "ops/algorithms/chain_reduce.h"

#include <cstdint>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {

Schedule chain_reduce(const Shape& shape) {
  const int place = shape.neighbour(-shape.root);  // distance to the root along the chain
  const bool is_last = place + 1 == shape.size;
  const auto hop = static_cast<std::uint32_t>(shape.size - 1 - place);
  Schedule schedule;
  for (const ByteSpan& chunk : chunks_of(shape, {0, shape.bytes()})) {
    if (!is_last) add_receive(schedule, shape.neighbour(1), chunk, hop - 1, Action::kReduce);
    if (place == 0) continue;
    const std::uint32_t send = add_send(schedule, shape.neighbour(-1), chunk, hop);
    if (!is_last) {
      add_dependency(schedule, static_cast<std::uint32_t>(schedule.receives.size() - 1), send);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
