#include "ops/algorithms/host_one_hop.h"

#include <cassert>

#include "ops/algorithms/cut.h"
#include "ops/algorithms/keep_and_add.h"

namespace fasthorovod::ops {
namespace {

// A sum replaces what it was made of, so it waits for the own values to leave, too.
void exchange(Schedule& schedule, const Shape& shape, const HostLayout& layout, int stripe,
              ByteSpan chunk) {
  const ByteSpan piece{0, layout.piece_bytes};
  const std::uint32_t sum = add_sum(schedule, shape, piece, chunk);
  for (int distance = 1; distance < shape.size; ++distance) {
    const int to = layout.owner(shape.neighbour(distance), stripe);
    add_to_sum(schedule, schedule.sends[add_send(schedule, to, chunk, 0)], sum);
    const std::uint32_t receive =
        add_kept_receive(schedule, shape, piece, chunk, shape.neighbour(-distance), sum);
    int& from = schedule.receives[receive].peer;
    from = layout.owner(from, stripe);
  }
}

}  // namespace

Schedule host_one_hop(const HostLayout& layout, std::uint64_t chunk_bytes) {
  assert(layout.pieces <= 1 && "there is scratch for one piece");
  const Shape shape = layout.shape_between_hosts(chunk_bytes);
  Schedule schedule;
  schedule.pieces = layout.pieces;
  schedule.slots = layout.slots;
  schedule.receives_early = true;
  for (int stripe = 0; stripe < layout.stripes && layout.pieces > 0; ++stripe) {
    if (!layout.owns(stripe)) continue;
    const ByteSpan part{layout.area_offset(0, stripe), layout.stripe(0, stripe).bytes};
    for (const ByteSpan& chunk : chunks_of(shape, part)) {
      exchange(schedule, shape, layout, stripe, chunk);
    }
  }
  return schedule;
}

std::uint64_t host_one_hop_scratch(const HostLayout& layout) {
  return layout.crosses() ? scratch_for(layout.shape_between_hosts(0), {0, layout.piece_bytes}) : 0;
}

}  // namespace fasthorovod::ops
