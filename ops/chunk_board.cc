#include <fmt/format.h>

#include <utility>

#include "ops/chunk_board_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::Arrival;
using transport::ChunkTicket;
using transport::FrameHeader;

void ChunkBoard::Impl::start(Operation operation) {
  std::unique_lock lock(mutex_);
  const core::Status status = check_start(operation);
  const bool runs = status && !operation.schedule.empty();
  Loss loss;
  std::vector<Disagreement> disagreements;
  std::vector<ControlFrame> chunks = early_chunks_.take(operation.group, operation.sequence);
  std::function<void(core::Status)> done_at_once;
  if (runs) {
    ScheduleRunner& runner = flights_.add(std::move(operation));
    loss = launch(runner);
    disagreements = meet_peers(runner);
  } else {
    if (status) disagreements = pass_over(operation);
    done_at_once = std::move(operation.done);
  }
  lock.unlock();
  if (done_at_once) done_at_once(status);
  tell(std::move(loss));
  for (const Disagreement& disagreement : disagreements) hooks_.disagreement(disagreement);
  for (ControlFrame& chunk : chunks) deliver(std::move(chunk));
  wake_lanes_();
}

void ChunkBoard::Impl::pass(std::uint32_t group, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  flights_.pass(group, sequence);
  drop_early(group, sequence);
}

void ChunkBoard::Impl::fail(std::uint32_t group, std::uint64_t sequence, const Error& error) {
  std::unique_lock lock(mutex_);
  flights_.mark_failed(group, sequence);
  drop_early(group, sequence);
  ScheduleRunner* runner = flights_.find({.group = group, .sequence = sequence});
  std::optional<Ended> ended;
  if (runner != nullptr && !runner->failure()) {
    runner->fail(error);
    ended = finished(*runner);
  }
  lock.unlock();
  if (ended) ended->operation.done(ended->status);
  wake_lanes_();  // what is parked at its gates is dropped now
}

std::vector<int> ChunkBoard::Impl::awaited(std::uint32_t group, std::uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  const ScheduleRunner* runner = flights_.find({.group = group, .sequence = sequence});
  return runner == nullptr ? std::vector<int>{} : runner->awaited();
}

void ChunkBoard::Impl::forget_group(std::uint32_t group) {
  const std::lock_guard lock(mutex_);
  flights_.forget_group(group);
  early_notices_.drop_group(group);
  early_chunks_.drop_group(group);
}

void ChunkBoard::Impl::drop_early(std::uint32_t group, std::uint64_t sequence) {
  (void)early_notices_.take(group, sequence);
  (void)early_chunks_.take(group, sequence);
}

core::Status ChunkBoard::Impl::check_start(const Operation& operation) {
  if (over_) return *over_;
  if (core::Status status = ScheduleRunner::fits(operation); !status) return status;
  if (epoch_.value_or(operation.epoch) != operation.epoch) {
    return Error{ErrorCode::kInternal, operation.title + " belongs to another epoch"};
  }
  if (operation.door() != Door::kMessage && !flights_.begin(operation)) {
    return Error{ErrorCode::kInternal, operation.title + " was started out of order"};
  }
  epoch_ = operation.epoch;
  return {};
}

ChunkBoard::Impl::Loss ChunkBoard::Impl::launch(ScheduleRunner& runner) {
  runner.for_each_initial([this, &runner](int peer, std::uint32_t send) {
    peers_.push(peer, {runner.id(), send});
  });
  return loss_of(runner);
}

void ChunkBoard::Impl::fail_all(const Error& error) {
  std::unique_lock lock(mutex_);
  if (!over_) over_ = error;
  std::vector<Ended> ended;
  while (const ScheduleRunner* runner = flights_.oldest()) {
    const Error own = runner->failure().value_or(error);
    ended.push_back({flights_.remove(runner->id()), own});
  }
  peers_.drop_ready();
  lock.unlock();
  for (const Ended& each : ended) each.operation.done(each.status);
}

bool ChunkBoard::Impl::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_.has_value();
}

std::size_t ChunkBoard::Impl::in_flight() const {
  const std::lock_guard lock(mutex_);
  return flights_.size();
}

std::optional<ChunkBoard::Wait> ChunkBoard::Impl::waiting() const {
  const std::lock_guard lock(mutex_);
  const ScheduleRunner* runner = flights_.oldest();
  if (runner == nullptr) return std::nullopt;
  std::vector<int> ranks;
  for (const int peer : runner->operation().members) {
    if (runner->needs(peer)) ranks.push_back(peer);
  }
  const std::string& title = runner->operation().title;
  if (ranks.empty()) return Wait{-1, title + " waits for other ranks of its host", title};
  const int peer = is_planned(runner->operation().group) ? ranks.front() : -1;
  return Wait{peer, fmt::format("{} waits for rank {}", title, fmt::join(ranks, ", ")), title};
}

std::optional<ChunkBoard::Impl::Ended> ChunkBoard::Impl::finished(const ScheduleRunner& runner) {
  if (!runner.done()) return std::nullopt;
  const core::Status status = runner.failure() ? core::Status(*runner.failure()) : core::Status();
  return Ended{flights_.remove(runner.id()), status};
}

ChunkBoard::ChunkBoard(std::function<void(int peer, Error)> on_fault,
                       std::function<void()> wake_lanes, OrderedHooks hooks,
                       std::function<int(int peer)> flows_with)
    : impl_(std::make_unique<Impl>(std::move(on_fault), std::move(wake_lanes), std::move(hooks),
                                   std::move(flows_with))) {}
ChunkBoard::~ChunkBoard() = default;

void ChunkBoard::start(Operation operation) { impl_->start(std::move(operation)); }
void ChunkBoard::pass(std::uint32_t group, std::uint64_t sequence) { impl_->pass(group, sequence); }
void ChunkBoard::open_gates(std::uint32_t group, std::uint64_t sequence, std::uint32_t count) {
  impl_->open_gates(group, sequence, count);
}
void ChunkBoard::fail(std::uint32_t group, std::uint64_t sequence, const Error& error) {
  impl_->fail(group, sequence, error);
}
void ChunkBoard::say_ready_to(std::uint32_t group, std::uint64_t sequence, int rank) {
  impl_->say_ready_to(group, sequence, rank);
}
void ChunkBoard::depart(int peer, const Error& words, int flows) {
  impl_->depart(peer, words, flows);
}
std::vector<int> ChunkBoard::awaited(std::uint32_t group, std::uint64_t sequence) const {
  return impl_->awaited(group, sequence);
}
void ChunkBoard::forget_group(std::uint32_t group) { impl_->forget_group(group); }
void ChunkBoard::send_control(ControlFrame frame) { impl_->send_control(std::move(frame)); }
void ChunkBoard::fail_all(const Error& error) { impl_->fail_all(error); }
std::size_t ChunkBoard::in_flight() const { return impl_->in_flight(); }
std::optional<ChunkBoard::Wait> ChunkBoard::waiting() const { return impl_->waiting(); }

std::optional<transport::OutgoingChunk> ChunkBoard::take(int peer, transport::TakeOrder order) {
  return impl_->take(peer, order);
}

void ChunkBoard::join_next(int peer, transport::OutgoingChunk& chunk, std::uint64_t most) {
  impl_->join_next(peer, chunk, most);
}
bool ChunkBoard::has_work(int peer) const { return impl_->has_work(peer); }
transport::Backlog ChunkBoard::backlog(int peer) const { return impl_->backlog(peer); }
void ChunkBoard::sent(const ChunkTicket& ticket) { impl_->sent(ticket); }
core::Result<Arrival> ChunkBoard::arrive(int peer, const FrameHeader& header) {
  return impl_->arrive(peer, header);
}
void ChunkBoard::absorb(const ChunkTicket& ticket, std::uint64_t offset,
                        std::span<const std::byte> piece) {
  impl_->absorb(ticket, offset, piece);
}
void ChunkBoard::received(const ChunkTicket& ticket) { impl_->received(ticket); }
void ChunkBoard::flow_ended(int peer, const transport::FlowEnd& end) {
  impl_->flow_ended(peer, end);
}

}  // namespace fasthorovod::ops
