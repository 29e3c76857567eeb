#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/chunk_board_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::Arrival;
using transport::ChunkTicket;
using transport::FrameHeader;

namespace {

// Names no operation: what comes under it is dropped.
constexpr ChunkTicket kNowhere{};

}  // namespace

// A chunk goes to its place where the operation has started, and is kept where it has not. Its
// sender's notice may be on another flow, so the header alone says whether both mean the same
// operation. If not, the chunk is dropped, and the notice tells why.
core::Result<Arrival> ChunkBoard::Impl::arrive_early(int peer, const FrameHeader& header) {
  if (door_of(header.group) != Door::kOrdered) return unknown(peer, header);
  const ScheduleRunner* runner = flights_.find(header);
  if (runner == nullptr && flights_.is_ahead(header) && !is_dropped(header)) {
    return control_.arrive(peer, header);
  }
  if (runner == nullptr || runner->failure() ||
      runner->operation().fingerprint != header.fingerprint) {
    return Arrival{Arrival::Kind::kAbsorb, {}, kNowhere};
  }
  core::Result<Arrival> arrival = flights_.find(header)->arrive(peer, header);
  if (!arrival || arrival->kind != Arrival::Kind::kPark) return arrival;
  return Error{ErrorCode::kProtocol,
               fmt::format("rank {} sent a piece of {} early", peer, runner->operation().title),
               peer};
}

// Kept from before the start, which may have come meanwhile.
void ChunkBoard::Impl::early_received(ControlFrame frame) {
  std::unique_lock lock(mutex_);
  const FrameHeader header = frame.header;
  if (over_ || is_dropped(header)) return;
  if (!flights_.is_ahead(header)) {
    lock.unlock();
    return deliver(std::move(frame));
  }
  const int peer = frame.peer;
  const std::size_t bytes = frame.payload.size() + transport::kFrameHeaderBytes;
  if (early_chunks_.add(header.group, header.sequence, std::move(frame), bytes)) return;
  lock.unlock();
  on_fault_(peer, {ErrorCode::kProtocol, fmt::format("rank {} sent too much early", peer), peer});
}

// Does what a lane would do now.
void ChunkBoard::Impl::deliver(ControlFrame frame) {
  core::Result<Arrival> arrival = arrive(frame.peer, frame.header);
  if (!arrival) {
    if (!is_over()) on_fault_(frame.peer, std::move(arrival).error());
    return;
  }
  if (arrival->kind == Arrival::Kind::kInto) {
    std::ranges::copy(frame.payload, arrival->into.begin());
  } else if (!frame.payload.empty()) {
    absorb(arrival->ticket, 0, frame.payload);
  }
  received(arrival->ticket);
}

}  // namespace fasthorovod::ops
