#include "ops/algorithms/keep_and_add.h"

namespace fasthorovod::ops {
namespace {

// What each rank sends begins at a whole cache line.
std::uint64_t stride_of(ByteSpan part) {
  constexpr std::uint64_t kLine = 64;
  return (part.bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

std::uint64_t scratch_for(const Shape& shape, ByteSpan part) {
  return static_cast<std::uint64_t>(shape.size - 1) * stride_of(part);
}

std::uint32_t add_sum(Schedule& schedule, const Shape& shape, ByteSpan part, ByteSpan chunk) {
  schedule.sums.push_back({.span = chunk,
                           .offset = chunk.offset - part.offset,
                           .stride = stride_of(part),
                           .others = static_cast<std::uint32_t>(shape.size - 1),
                           .place = static_cast<std::uint32_t>(shape.rank)});
  return static_cast<std::uint32_t>(schedule.sums.size() - 1);
}

std::uint32_t add_kept_receive(Schedule& schedule, const Shape& shape, ByteSpan part,
                               ByteSpan chunk, int from, std::uint32_t sum) {
  const auto other = static_cast<std::uint64_t>(from < shape.rank ? from : from - 1);
  const ByteSpan place{other * stride_of(part) + chunk.offset - part.offset, chunk.bytes};
  const std::uint32_t receive = add_receive(schedule, from, place, 0, Action::kKeep);
  add_to_sum(schedule, schedule.receives[receive], sum);
  return receive;
}

}  // namespace fasthorovod::ops
