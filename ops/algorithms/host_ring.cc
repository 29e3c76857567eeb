#include "ops/algorithms/host_ring.h"

#include <utility>

#include "ops/algorithms/ring_allreduce.h"

namespace fasthorovod::ops {
namespace {

// Adds the ring of one stripe behind what the schedule has. A pair of ranks may share several
// stripes: both add them in the same order, so their transfers get the same numbers.
void append(Schedule& schedule, Schedule ring, const HostLayout& layout, std::uint32_t piece,
            int stripe) {
  const auto first_send = static_cast<std::uint32_t>(schedule.sends.size());
  const std::uint64_t place = layout.area_offset(piece, stripe);
  for (Send& send : ring.sends) {
    send.peer = layout.owner(send.peer, stripe);
    send.span.offset += place;
    send.piece = piece;
    schedule.sends.push_back(send);
  }
  for (Receive& receive : ring.receives) {
    receive.peer = layout.owner(receive.peer, stripe);
    receive.span.offset += place;
    receive.piece = piece;
    for (std::uint32_t& send : receive.unlocks) send += first_send;
    schedule.receives.push_back(std::move(receive));
  }
}

}  // namespace

Schedule host_ring(const HostLayout& layout, std::uint64_t chunk_bytes) {
  Shape shape = layout.shape_between_hosts(chunk_bytes);
  Schedule schedule;
  schedule.pieces = layout.pieces;
  schedule.slots = layout.slots;
  for (std::uint32_t piece = 0; piece < layout.pieces; ++piece) {
    for (int stripe = 0; stripe < layout.stripes; ++stripe) {
      if (!layout.owns(stripe)) continue;
      shape.elements = layout.stripe(piece, stripe).bytes / layout.element_bytes;
      append(schedule, ring_allreduce(shape), layout, piece, stripe);
    }
  }
  return schedule;
}

}  // namespace fasthorovod::ops
