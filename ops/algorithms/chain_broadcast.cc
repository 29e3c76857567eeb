#include "ops/algorithms/chain_broadcast.h"

#include <cstdint>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {

Schedule chain_broadcast(const Shape& shape) {
  const int place = shape.neighbour(-shape.root);  // in the chain; the root's is 0
  const auto hop = static_cast<std::uint32_t>(place);
  Schedule schedule;
  for (const ByteSpan& chunk : chunks_of(shape, {0, shape.bytes()})) {
    const bool passes_on = place + 1 < shape.size;
    if (passes_on) add_send(schedule, shape.neighbour(1), chunk, hop);
    if (place == 0) continue;
    const std::uint32_t receive =
        add_receive(schedule, shape.neighbour(-1), chunk, hop - 1, Action::kCopy);
    if (passes_on) {
      add_dependency(schedule, receive, static_cast<std::uint32_t>(schedule.sends.size() - 1));
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
