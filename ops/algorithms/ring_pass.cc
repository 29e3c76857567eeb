#include "ops/algorithms/ring_pass.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {
namespace {

std::vector<ByteSpan> chunks_of_part(const Shape& shape, const RingPass& pass, int distance) {
  return chunks_of(shape, pass.part(shape, shape.neighbour(distance)));
}

}  // namespace

Schedule ring_pass(const Shape& shape, const RingPass& pass) {
  Schedule schedule;
  std::vector<std::uint32_t> came;  // receives of the step before, chunk by chunk
  for (int step = 0; step < pass.steps; ++step) {
    const auto hop = static_cast<std::uint32_t>(step);
    const std::vector<ByteSpan> leaving = chunks_of_part(shape, pass, -step);
    for (std::size_t chunk = 0; chunk < leaving.size(); ++chunk) {
      const std::uint32_t send = add_send(schedule, shape.neighbour(1), leaving[chunk], hop);
      if (step > 0) add_dependency(schedule, came[chunk], send);
    }
    came.clear();
    const Action action = step < pass.reduce_steps ? Action::kReduce : Action::kCopy;
    for (const ByteSpan& chunk : chunks_of_part(shape, pass, -1 - step)) {
      came.push_back(add_receive(schedule, shape.neighbour(-1), chunk, hop, action));
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
