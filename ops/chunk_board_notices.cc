#include <fmt/format.h>

#include <utility>

#include "ops/chunk_board_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::ChunkTicket;
using transport::FrameHeader;
using transport::FrameKind;

// Tells the peers that this rank has started.
void ChunkBoard::Impl::say_ready(const ScheduleRunner& runner) {
  runner.for_each_notice([&](int peer, const ReadyNotice& notice) {
    queue_control({peer, runner.header(FrameKind::kReady), encode(notice)});
  });
}

void ChunkBoard::Impl::say_ready_to(std::uint32_t group, std::uint64_t sequence, int rank) {
  {
    const std::lock_guard lock(mutex_);
    const ScheduleRunner* runner = flights_.find({.group = group, .sequence = sequence});
    if (runner == nullptr || runner->failure()) return;
    const Operation& operation = runner->operation();
    const ReadyNotice notice{operation.fingerprint, 0, 0, operation.description};
    queue_control({rank, runner->header(FrameKind::kReady), encode(notice)});
  }
  wake_lanes_();
}

// Tells the peers, unless others must start first, and hears those that have said so before.
std::vector<Disagreement> ChunkBoard::Impl::meet_peers(ScheduleRunner& runner) {
  const Operation& operation = runner.operation();
  if (!operation.held) say_ready(runner);
  std::vector<Disagreement> found;
  for (const auto& [peer, notice] : early_notices_.take(operation.group, operation.sequence)) {
    Heard heard = hear(runner, peer, notice);
    if (heard.disagreement) found.push_back(*std::move(heard.disagreement));
  }
  return found;
}

// An operation that moves nothing here ends at once; others may see it differently.
std::vector<Disagreement> ChunkBoard::Impl::pass_over(const Operation& operation) {
  std::vector<Disagreement> found;
  flights_.note_past(operation);
  for (auto& [peer, notice] : early_notices_.take(operation.group, operation.sequence)) {
    if (notice.fingerprint == operation.fingerprint) continue;
    found.push_back({operation.group, operation.sequence, peer, operation.description,
                     std::move(notice.description)});
  }
  return found;
}

ChunkBoard::Impl::Heard ChunkBoard::Impl::hear(ScheduleRunner& runner, int peer,
                                               const ReadyNotice& notice) {
  Heard heard;
  if (runner.failure()) return heard;
  const Operation& operation = runner.operation();
  if (operation.door() == Door::kOrdered && !runner.agrees(peer, notice)) {
    heard.disagreement = Disagreement{operation.group, operation.sequence, peer,
                                      operation.description, notice.description};
    return heard;
  }
  runner.peer_ready(peer, [&](int to, std::uint32_t send) {
    peers_.push(to, {runner.id(), send});
    heard.runnable = true;
  });
  return heard;
}

void ChunkBoard::Impl::queue_control(ControlFrame frame) {
  const int peer = frame.peer;
  peers_.push_urgent(peer, control_.keep(std::move(frame)));
}

void ChunkBoard::Impl::send_control(ControlFrame frame) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    queue_control(std::move(frame));
  }
  wake_lanes_();
}

void ChunkBoard::Impl::control_received(const ChunkTicket& ticket) {
  std::unique_lock lock(mutex_);
  ControlFrame frame = control_.take(ticket);
  lock.unlock();
  if (frame.header.kind == FrameKind::kEarly) {
    early_received(std::move(frame));
  } else if (frame.header.kind == FrameKind::kReady) {
    ready_received(frame);
  } else if (frame.header.kind == FrameKind::kOpened) {
    opened_received(frame);
  } else {
    hooks_.message(frame);
  }
}

void ChunkBoard::Impl::ready_received(const ControlFrame& frame) {
  std::unique_lock lock(mutex_);
  Heard heard = notice(frame);
  lock.unlock();
  if (heard.error) on_fault_(frame.peer, *std::move(heard.error));
  if (heard.disagreement) hooks_.disagreement(*heard.disagreement);
  if (heard.runnable) wake_lanes_();
}

ChunkBoard::Impl::Heard ChunkBoard::Impl::notice(const ControlFrame& frame) {
  const FrameHeader& header = frame.header;
  Heard heard;
  std::optional<ReadyNotice> said = decode_ready(header.fingerprint, frame.payload);
  if (!said) {
    heard.error =
        Error{ErrorCode::kProtocol,
              fmt::format("rank {} sent a notice that makes no sense", frame.peer), frame.peer};
    return heard;
  }
  if (over_ || is_dropped(header)) return heard;
  if (ScheduleRunner* runner = flights_.find(header)) return hear(*runner, frame.peer, *said);
  // Else a message was given up here, and its receiver was told.
  if (door_of(header.group) != Door::kOrdered) return heard;
  if (flights_.is_ahead(header)) {
    if (!early_notices_.add(header.group, header.sequence, {frame.peer, *std::move(said)})) {
      heard.error =
          Error{ErrorCode::kProtocol,
                fmt::format("rank {} announced too many operations", frame.peer), frame.peer};
    }
  } else if (const auto* past = flights_.past(header);
             past != nullptr && past->fingerprint != said->fingerprint) {
    heard.disagreement = Disagreement{header.group, header.sequence, frame.peer, past->description,
                                      std::move(said->description)};
  }
  return heard;
}

}  // namespace fasthorovod::ops
