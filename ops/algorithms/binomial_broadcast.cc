#include "ops/algorithms/binomial_broadcast.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {
namespace {

/// The lowest set bit of `place`; for the root the smallest power of two that is at least `size`.
unsigned reach_of(unsigned place, unsigned size) {
  return place == 0 ? std::bit_ceil(size) : 1U << static_cast<unsigned>(std::countr_zero(place));
}

}  // namespace

Schedule binomial_broadcast(const Shape& shape) {
  const auto size = static_cast<unsigned>(shape.size);
  const auto place = static_cast<unsigned>(shape.neighbour(-shape.root));
  const unsigned reach = reach_of(place, size);
  const auto hop = static_cast<std::uint32_t>(std::popcount(place));
  const std::vector<ByteSpan> chunks = chunks_of(shape, {0, shape.bytes()});
  Schedule schedule;
  if (place != 0) {
    for (const ByteSpan& chunk : chunks) {
      add_receive(schedule, shape.neighbour(-static_cast<int>(reach)), chunk, hop - 1,
                  Action::kCopy);
    }
  }
  for (unsigned distance = reach / 2; distance > 0; distance /= 2) {
    if (place + distance >= size) continue;
    for (std::uint32_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const int child = shape.neighbour(static_cast<int>(distance));
      const std::uint32_t send = add_send(schedule, child, chunks[chunk], hop);
      if (place != 0) add_dependency(schedule, chunk, send);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
