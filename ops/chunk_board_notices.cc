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
    if (auto disagreement = hear(runner, peer, notice)) found.push_back(*std::move(disagreement));
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

std::optional<Disagreement> ChunkBoard::Impl::hear(ScheduleRunner& runner, int peer,
                                                   const ReadyNotice& notice) {
  if (runner.failure()) return std::nullopt;
  const Operation& operation = runner.operation();
  if (operation.door() == Door::kOrdered && !runner.agrees(peer, notice)) {
    return Disagreement{operation.group, operation.sequence, peer, operation.description,
                        notice.description};
  }
  runner.peer_ready(peer, [this, &runner](int to, std::uint32_t send) {
    peers_.push(to, {runner.id(), send});
  });
  return std::nullopt;
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
  std::optional<Disagreement> disagreement;
  std::unique_lock lock(mutex_);
  std::optional<Error> error = notice(frame, disagreement);
  lock.unlock();
  if (error) on_fault_(frame.peer, *std::move(error));
  if (disagreement) hooks_.disagreement(*disagreement);
  wake_lanes_();
}

std::optional<Error> ChunkBoard::Impl::notice(const ControlFrame& frame,
                                              std::optional<Disagreement>& found) {
  const FrameHeader& header = frame.header;
  std::optional<ReadyNotice> said = decode_ready(header.fingerprint, frame.payload);
  if (!said) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("rank {} sent a notice that makes no sense", frame.peer), frame.peer};
  }
  if (over_ || is_dropped(header)) return std::nullopt;
  if (ScheduleRunner* runner = flights_.find(header)) {
    found = hear(*runner, frame.peer, *said);
  } else if (door_of(header.group) != Door::kOrdered) {
    return std::nullopt;  // the message was given up here, and its receiver was told
  } else if (flights_.is_ahead(header)) {
    if (!early_notices_.add(header.group, header.sequence, {frame.peer, *std::move(said)})) {
      return Error{ErrorCode::kProtocol,
                   fmt::format("rank {} announced too many operations", frame.peer), frame.peer};
    }
  } else if (const auto* past = flights_.past(header);
             past != nullptr && past->fingerprint != said->fingerprint) {
    found = Disagreement{header.group, header.sequence, frame.peer, past->description,
                         std::move(said->description)};
  }
  return std::nullopt;
}

}  // namespace fasthorovod::ops
