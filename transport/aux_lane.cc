#include "transport/aux_lane.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "transport/aux_pool.h"
#include "transport/fork_guard.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

// Beyond what its flows may take to close.
constexpr std::chrono::milliseconds kDetachLimit{3'000};
constexpr std::chrono::milliseconds kKillLimit{2'000};

constexpr std::size_t kMailboxBytes =
    (sizeof(AuxMailbox) + Arena::kPage - 1) / Arena::kPage * Arena::kPage;

LaneStatistics statistics_of(const AuxMailbox& mailbox) {
  const SharedStatistics& counters = mailbox.statistics;
  return {.bytes_sent = counters.bytes_sent.load(),
          .bytes_received = counters.bytes_received.load(),
          .chunks_sent = counters.chunks_sent.load(),
          .chunks_received = counters.chunks_received.load(),
          .turns = counters.turns.load()};
}

}  // namespace

core::Result<std::unique_ptr<AuxLane>> AuxLane::attach(
    const AuxHome& home, AuxProcessPtr process, const LaneOptions& options, ChunkWork& work,
    std::function<void(const std::string& how)> on_lost) {
  const auto fail = [&](Error error) {
    AuxPool::of_process().give_back(std::move(process));
    return error;
  };
  FileDescriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return fail(core::system_error("creating the bell of an auxiliary", errno));
  const std::span<std::byte> memory = home.heap.allocate(kMailboxBytes + home.staging_bytes);
  if (memory.empty()) {
    return fail(
        {ErrorCode::kUnavailable,
         fmt::format("no {} MiB for an auxiliary are left in this rank's arena of {} MiB",
                     (kMailboxBytes + home.staging_bytes) >> 20, home.arena.bytes().size() >> 20)});
  }
  std::unique_ptr<AuxLane> lane(
      new AuxLane(home, {std::move(process), memory, std::move(bell), std::move(on_lost)}, work,
                  options.rates));
  if (core::Status status = lane->introduce(options); !status) return std::move(status).error();
  return lane;
}

AuxLane::AuxLane(const AuxHome& home, Parts parts, ChunkWork& work,
                 std::shared_ptr<RateBoard> rates)
    : server_(home.server),
      arena_(home.arena),
      heap_(home.heap),
      answer_limit_(home.answer_limit),
      process_(std::move(parts.process)),
      memory_(parts.memory),
      mailbox_(*new(memory_.data()) AuxMailbox),
      bell_(std::move(parts.bell)),
      desk_({arena_, mailbox_, memory_.subspan(kMailboxBytes)}, FileDescriptor(::dup(bell_.get())),
            work, std::move(rates)),
      on_lost_(std::move(parts.on_lost)) {}

core::Status AuxLane::introduce(const LaneOptions& options) {
  const AuxMessage message{
      .kind = AuxMessage::Kind::kAttach,
      .mailbox = arena_.offset_of(memory_),
      .notsent_lowat = options.notsent_lowat,
      .close_limit_ms = static_cast<std::int32_t>(options.close_limit.count())};
  const std::array descriptors{arena_.fd(), server_.bell(), bell_.get()};
  if (core::Status status = process_->socket().send(message, descriptors); !status) return status;
  server_.add(*this);
  process_->on_end([this](const std::string& how) { lost(how); });
  return {};
}

void AuxLane::add_flow(int peer, FileDescriptor socket) {
  const std::lock_guard lock(mutex_);
  if (last_) return;
  drop_on_fork(socket);
  const std::uint32_t flow = desk_.add_flow(peer);
  const core::Status told = process_->socket().send(
      {.kind = AuxMessage::Kind::kFlow, .number = peer, .flow = flow}, std::array{socket.get()});
  // One that is dead can not be told either, and how it died says more.
  if (!told && !process_->ended()) give_up("takes no flow: " + told.error().message);
  flows_.push_back(std::move(socket));
}

void AuxLane::begin_stop() {
  {
    const std::lock_guard lock(mutex_);
    if (last_) return;
    last_ = statistics_of(mailbox_);
  }
  process_->on_end({});
  server_.remove(*this);
  desk_.close();
  const core::Status told = lost_.load()
                                ? core::Status(Error{})
                                : process_->socket().send({.kind = AuxMessage::Kind::kDetach});
  const std::lock_guard lock(mutex_);
  told_ = told.has_value();
}

void AuxLane::stop() {
  begin_stop();
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  if (told_ && detached()) {
    AuxPool::of_process().give_back(process_);
  } else {
    process_->kill();
    process_->await_end(kKillLimit);
  }
  const std::lock_guard lock(mutex_);
  flows_.clear();
  last_ = statistics_of(mailbox_);
  heap_.release(memory_);
}

bool AuxLane::detached() const {
  const auto answer = process_->socket().receive(kDetachLimit);
  return answer && *answer && (*answer)->message.kind == AuxMessage::Kind::kDetached;
}

LaneStatistics AuxLane::statistics() const {
  const std::lock_guard lock(mutex_);
  if (last_) return *last_;
  return statistics_of(mailbox_);
}

bool AuxLane::serve() {
  if (lost_.load()) return false;
  const auto again = desk_.serve();
  if (again) return *again;
  give_up("was given up: " + again.error().message);
  return false;
}

bool AuxLane::arm() { return lost_.load() || desk_.arm(); }

void AuxLane::check_alive(core::TimePoint now) {
  if (lost_.load()) return;
  if (asked_at_ && desk_.heard() == heard_then_) {
    if (now - *asked_at_ < answer_limit_) return;
    return give_up(
        fmt::format("did not answer for {} s: its process is stopped or starved",
                    std::chrono::duration_cast<std::chrono::seconds>(answer_limit_).count()));
  }
  asked_at_ = now;
  heard_then_ = desk_.heard();
  desk_.ask_alive();
}

void AuxLane::give_up(const std::string& how) {
  lost(how);
  process_->kill();
}

void AuxLane::lost(const std::string& how) {
  if (!lost_.exchange(true)) on_lost_(how);
}

}  // namespace fasthorovod::transport
