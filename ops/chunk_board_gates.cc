#include <fmt/format.h>

#include <utility>

#include "ops/chunk_board_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::FrameKind;

void ChunkBoard::Impl::open_gates(std::uint32_t group, std::uint64_t sequence,
                                  std::uint32_t count) {
  std::unique_lock lock(mutex_);
  ScheduleRunner* runner = flights_.find({.group = group, .sequence = sequence});
  if (runner == nullptr || runner->failure()) return;
  if (runner->release_hold()) say_ready(*runner);
  const ScheduleRunner::Opened opened =
      runner->open_gates(count, [&](int peer, std::uint32_t send) {
        peers_.push(peer, {runner->id(), send});
      });
  for (const int peer : opened.peers) {
    transport::FrameHeader header = runner->header(FrameKind::kOpened);
    header.transfer = opened.count;
    queue_control({peer, header, {}});
  }
  settle(lock, *runner, opened.over);
  wake_lanes_();
}

void ChunkBoard::Impl::opened_received(const ControlFrame& frame) {
  std::unique_lock lock(mutex_);
  std::optional<Error> error = peer_opened(frame);
  lock.unlock();
  if (error) on_fault_(frame.peer, *std::move(error));
  wake_lanes_();
}

// Frames overtake each other, so a smaller count may come after a larger one, and even when the
// operation is over. Never before its start: a peer opens a later gate only after it has got all of
// an earlier piece from this rank.
std::optional<Error> ChunkBoard::Impl::peer_opened(const ControlFrame& frame) {
  if (over_ || is_dropped(frame.header)) return std::nullopt;
  ScheduleRunner* runner = flights_.find(frame.header);
  if (runner == nullptr) {
    if (!flights_.is_ahead(frame.header)) return std::nullopt;
    return Error{ErrorCode::kProtocol,
                 fmt::format("rank {} opened pieces of operation {} of group {} before its start",
                             frame.peer, frame.header.sequence, group_of(frame.header.group)),
                 frame.peer};
  }
  if (runner->failure()) return std::nullopt;
  const bool makes_sense =
      runner->peer_opened(frame.peer, frame.header.transfer, [&](int peer, std::uint32_t send) {
        peers_.push(peer, {runner->id(), send});
      });
  if (makes_sense) return std::nullopt;
  return Error{ErrorCode::kProtocol,
               fmt::format("rank {} is ready for {} pieces of {}", frame.peer,
                           frame.header.transfer, runner->operation().title),
               frame.peer};
}

}  // namespace fasthorovod::ops
