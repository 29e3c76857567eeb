#include <fmt/format.h>

#include <utility>

#include "ops/chunk_board_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::Arrival;
using transport::ChunkTicket;
using transport::FrameHeader;
using transport::FrameKind;
using transport::TakeOrder;

namespace {

// Names no operation: what comes under it is dropped.
constexpr ChunkTicket kNowhere{};

}  // namespace

std::optional<transport::OutgoingChunk> ChunkBoard::Impl::take(int peer, TakeOrder order) {
  const std::lock_guard lock(mutex_);
  while (const std::optional<ChunkTicket> send = peers_.pop(peer, order)) {
    if (ControlFrames::owns(*send)) return control_.outgoing(*send);
    ScheduleRunner* runner = flights_.find(send->operation);
    if (runner != nullptr && !runner->failure()) return runner->outgoing(send->transfer);
  }
  return std::nullopt;
}

void ChunkBoard::Impl::join_next(int peer, transport::OutgoingChunk& chunk, std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  if (ControlFrames::owns(chunk.ticket)) return;
  ScheduleRunner* runner = flights_.find(chunk.ticket.operation);
  if (runner == nullptr || runner->failure()) return;
  while (join_one(peer, *runner, chunk, most)) {
  }
}

bool ChunkBoard::Impl::join_one(int peer, ScheduleRunner& runner, transport::OutgoingChunk& chunk,
                                std::uint64_t most) {
  for (const TakeOrder order : {TakeOrder::kOldest, TakeOrder::kFreshFirst}) {
    const std::optional<ChunkTicket> next = peers_.next(peer, order);
    if (!next || next->operation != runner.id()) continue;
    if (!runner.join(chunk, next->transfer, most)) continue;
    (void)peers_.pop(peer, order);
    return true;
  }
  return false;
}

bool ChunkBoard::Impl::has_work(int peer) const {
  const std::lock_guard lock(mutex_);
  return peers_.has_ready(peer);
}

transport::Backlog ChunkBoard::Impl::backlog(int peer) const {
  const std::lock_guard lock(mutex_);
  transport::Backlog backlog;
  if (const std::optional<ChunkTicket> next = peers_.next(peer, TakeOrder::kOldest);
      next && !ControlFrames::owns(*next)) {
    const ScheduleRunner* runner = flights_.find(next->operation);
    if (runner != nullptr) backlog.next = runner->bytes_of_send(next->transfer);
  }
  flights_.for_each_that_needs(
      peer, [&](const ScheduleRunner& runner) { backlog.untaken += runner.untaken(peer); });
  return backlog;
}

// A ticket whose operation is unknown belongs to one that fail_all took away.
void ChunkBoard::Impl::sent(const ChunkTicket& ticket) {
  if (ControlFrames::owns(ticket)) {
    const std::lock_guard lock(mutex_);
    return control_.sent(ticket);
  }
  for (std::uint32_t part = 0; part < ticket.count; ++part) count_sent(ticket, part);
}

// The operation is there until the last one is counted.
void ChunkBoard::Impl::count_sent(const ChunkTicket& ticket, std::uint32_t part) {
  std::unique_lock lock(mutex_);
  ScheduleRunner* runner = flights_.find(ticket.operation);
  if (runner == nullptr) return;
  const std::uint32_t send = runner->send_of(ticket, part);
  add_up(lock, *runner, runner->due_with_send(send));
  settle(lock, *runner, runner->sent(send));
}

// The operation stays alive: it can not be done before the transfer that made the sum due is
// counted.
void ChunkBoard::Impl::add_up(std::unique_lock<std::mutex>& lock, const ScheduleRunner& runner,
                              std::optional<std::uint32_t> sum) {
  if (!sum) return;
  lock.unlock();
  runner.add_up(*sum);
  lock.lock();
}

// Tells the operation's owner of pieces that are over, and then perhaps that all is.
void ChunkBoard::Impl::settle(std::unique_lock<std::mutex>& lock, ScheduleRunner& runner,
                              const std::vector<std::uint32_t>& over) {
  if (!over.empty()) {
    const std::uint64_t id = runner.id();
    const auto piece_done = runner.operation().piece_done;  // fail_all may take the operation away
    lock.unlock();
    for (const std::uint32_t piece : over) piece_done(piece);
    lock.lock();
    if (flights_.find(id) != &runner) return lock.unlock();
    runner.told(over.size());
  }
  std::optional<Ended> ended = finished(runner);
  lock.unlock();
  if (ended) ended->operation.done(ended->status);
}

core::Result<Arrival> ChunkBoard::Impl::arrive(int peer, const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  if (over_) return *over_;
  if (epoch_ && *epoch_ != header.epoch) return unknown(peer, header);
  if (header.kind == FrameKind::kEarly) return arrive_early(peer, header);
  if (header.kind != FrameKind::kData) return control_.arrive(peer, header);
  ScheduleRunner* runner = flights_.find(header);
  if (runner != nullptr && !runner->failure()) return runner->arrive(peer, header);
  if (is_dropped(header)) return Arrival{Arrival::Kind::kAbsorb, {}, kNowhere};
  if (door_of(header.group) == Door::kNamed && flights_.is_ahead(header)) return Arrival{};
  return unknown(peer, header);
}

bool ChunkBoard::Impl::is_dropped(const FrameHeader& header) const {
  return flights_.is_forgotten(header.group) || flights_.has_failed(header);
}

Error ChunkBoard::Impl::unknown(int peer, const FrameHeader& header) const {
  if (epoch_.value_or(header.epoch) != header.epoch) {
    return {
        ErrorCode::kProtocol,
        fmt::format("rank {} sent a chunk of epoch {} in epoch {}", peer, header.epoch, *epoch_),
        peer};
  }
  return {ErrorCode::kProtocol,
          fmt::format("rank {} sent a chunk of operation {} of group {}, which is over", peer,
                      header.sequence, group_of(header.group)),
          peer};
}

void ChunkBoard::Impl::absorb(const ChunkTicket& ticket, std::uint64_t offset,
                              std::span<const std::byte> piece) {
  std::unique_lock lock(mutex_);
  if (ControlFrames::owns(ticket)) return control_.absorb(ticket, piece);
  const ScheduleRunner* runner = flights_.find(ticket.operation);
  lock.unlock();
  // It stays alive: it can not be done before received(ticket).
  if (runner != nullptr) runner->absorb(ticket.transfer, offset, piece);
}

void ChunkBoard::Impl::received(const ChunkTicket& ticket) {
  if (ControlFrames::owns(ticket)) return control_received(ticket);
  bool runnable = false;
  for (std::uint32_t part = 0; part < ticket.count; ++part) {
    runnable = count_received(ticket, part) || runnable;
  }
  if (runnable) wake_lanes_();
}

// Whether chunks may leave now that waited for it.
bool ChunkBoard::Impl::count_received(const ChunkTicket& ticket, std::uint32_t part) {
  std::unique_lock lock(mutex_);
  ScheduleRunner* runner = flights_.find(ticket.operation);
  if (runner == nullptr) return false;
  const std::uint32_t receive = runner->receive_of(ticket, part);
  add_up(lock, *runner, runner->due_with_receive(receive));
  bool runnable = false;
  const std::vector<std::uint32_t> over =
      runner->received(receive, [&](int peer, std::uint32_t send) {
        peers_.push_fresh(peer, {ticket.operation, send});
        runnable = true;
      });
  settle(lock, *runner, over);
  return runnable;
}

}  // namespace fasthorovod::ops
