#include "ops/message_door.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/wire.h"
#include "ops/outcome.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::FrameKind;

namespace {

// A message's name on the wire is its sender and a count, so that no two ranks use the same.
constexpr unsigned kSenderShift = 40;
constexpr std::size_t kMaxReason = 768;

std::vector<std::byte> encode_refusal(const Error& error) {
  core::WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(error.code));
  writer.text(std::string_view(error.message).substr(0, kMaxReason));
  return std::move(writer).take();
}

std::optional<Error> decode_refusal(std::span<const std::byte> bytes) {
  core::WireReader reader(bytes);
  const auto code = reader.u8();
  std::string message = reader.text();
  const bool known = code <= static_cast<std::uint8_t>(ErrorCode::kInternal);
  if (!reader.ok() || !reader.at_end() || !known) return std::nullopt;
  return Error{static_cast<ErrorCode>(code), std::move(message), -1};
}

}  // namespace

MessageDoor::MessageDoor(const core::World& world, int flows, const GroupTable& groups,
                         ChunkBoard& board, Worker& worker, DeadlineQueue& deadlines, Hooks hooks)
    : world_(world),
      flows_(flows),
      groups_(groups),
      board_(board),
      worker_(worker),
      deadlines_(deadlines),
      hooks_(std::move(hooks)) {}

// --- submitting --------------------------------------------------------------------------

core::Result<MessagePtr> MessageDoor::take(Message message, bool sends) {
  core::Result<GroupPtr> group = groups_.find(message.group);
  if (!group) return std::move(group).error();
  const int lowest = sends ? 0 : -1;
  if (message.peer < lowest || message.peer >= (*group)->size()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("rank {} is not one of the {} of group {}", message.peer,
                             (*group)->size(), message.group)};
  }
  auto job = std::make_shared<MessageJob>();
  job->group = *std::move(group);
  job->sends = sends;
  job->peer = message.peer < 0 ? -1 : job->group->world_rank(message.peer);
  job->message = std::move(message);
  return job;
}

core::Result<Handle> MessageDoor::send(Message message) {
  core::Result<MessagePtr> taken = take(std::move(message), true);
  if (!taken) return std::move(taken).error();
  const MessagePtr& job = *taken;
  if (job->peer != world_.rank) hooks_.need_flows(job->peer);
  const std::lock_guard lock(mutex_);
  if (closed_) return *closed_;
  job->sequence = (static_cast<std::uint64_t>(world_.rank) << kSenderShift) | ++last_id_;
  pending_.fetch_add(1);
  watch(job);
  announce(job);
  return job->handle;
}

void MessageDoor::announce(const MessagePtr& job) {
  Mailbox& mailbox = mailboxes_[job->group->id];
  Announcement announcement{.sender = world_.rank,
                            .sequence = job->sequence,
                            .tag = job->message.tag,
                            .ordinal = mailbox.next_ordinal(job->peer),
                            .bytes = job->message.bytes.size(),
                            .title = title_of(*job, world_),
                            .local = nullptr,
                            .refused = {}};
  if (job->peer == world_.rank) {
    announcement.local = job;
    for (const Mailbox::Match& found : mailbox.announce(std::move(announcement))) {
      match(found.receive, found.announcement);
    }
    return;
  }
  start(job);
  board_.send_control({job->peer,
                       {.epoch = world_.epoch,
                        .group = wire_group(job->group->id, Door::kMessage),
                        .sequence = job->sequence,
                        .kind = FrameKind::kAnnounce},
                       encode(announcement)});
}

core::Result<Handle> MessageDoor::receive(Message message) {
  core::Result<MessagePtr> taken = take(std::move(message), false);
  if (!taken) return std::move(taken).error();
  const MessagePtr& job = *taken;
  if (job->peer >= 0 && job->peer != world_.rank) hooks_.need_flows(job->peer);
  const std::lock_guard lock(mutex_);
  if (closed_) return *closed_;
  pending_.fetch_add(1);
  watch(job);
  Mailbox& mailbox = mailboxes_[job->group->id];
  if (const auto announcement = mailbox.post(job)) {
    match(job, *announcement);
  } else if (const auto lost = lost_.find(job->peer); lost != lost_.end()) {
    mailbox.withdraw(job);
    settle(job, lost->second);
  } else if (const auto ended = ended_.find({job->group->id, job->peer}); ended != ended_.end()) {
    mailbox.withdraw(job);
    settle(job, ended->second);
  }
  return job->handle;
}

void MessageDoor::watch(const MessagePtr& job) {
  if (job->message.time_limit.count() <= 0) return;
  job->deadline =
      deadlines_.add(core::Clock::now() + job->message.time_limit, [this, job] { expire(job); });
}

// --- matching ----------------------------------------------------------------------------

void MessageDoor::match(const MessagePtr& receive, const Announcement& announcement) {
  receive->peer = announcement.sender;
  if (announcement.refused) return settle(receive, *announcement.refused);
  if (announcement.bytes != receive->message.bytes.size()) {
    const Error error =
        wrong_size(receive, announcement.sender, announcement.bytes, announcement.title);
    settle(receive, error);
    if (announcement.local != nullptr) return settle(announcement.local, error);
    return refuse(announcement.sender, receive->group->id, announcement.sequence, error);
  }
  if (announcement.local != nullptr) return match_local(receive, announcement.local);
  receive->sequence = announcement.sequence;
  start(receive);
}

void MessageDoor::match_local(const MessagePtr& receive, const MessagePtr& send) {
  worker_.post([this, receive, send] {
    const auto& from = send->message.bytes;
    // Either may have been given up since.
    const bool both = !receive->over && !send->over;
    if (both && !from.empty()) {
      std::memmove(receive->message.bytes.data(), from.data(), from.size());
    }
    const core::Status status =
        both ? core::Status()
             : Error{ErrorCode::kTimedOut, "the other side of the message gave it up", world_.rank};
    finish(receive, status);
    finish(send, status);
  });
}

Error MessageDoor::wrong_size(const MessagePtr& receive, int sender, std::uint64_t bytes,
                              const std::string& title) const {
  return {ErrorCode::kMismatch,
          fmt::format("{} sent {} bytes with tag {} ({}), but {} expected {} ({})",
                      world_.describe(sender), bytes, receive->message.tag, title,
                      world_.describe(world_.rank), receive->message.bytes.size(),
                      title_of(*receive, world_)),
          -1};
}

void MessageDoor::start(const MessagePtr& job) {
  Operation operation = transfer_of(*job, world_, flows_);
  operation.done = [this, job](core::Status status) {
    worker_.post([this, job, status = std::move(status)] { finish(job, status); });
  };
  on_board_.emplace(Name{job->group->id, job->sequence}, job);
  messages_.fetch_add(1, std::memory_order_relaxed);
  payload_bytes_.fetch_add(job->message.bytes.size(), std::memory_order_relaxed);
  board_.start(std::move(operation));
}

// --- what peers say ----------------------------------------------------------------------

void MessageDoor::hear(const ControlFrame& frame) {
  if (frame.header.kind == FrameKind::kAnnounce) return announced(frame);
  refused(frame);
}

void MessageDoor::announced(const ControlFrame& frame) {
  Announcement announcement{.sender = frame.peer,
                            .sequence = frame.header.sequence,
                            .title = {},
                            .local = nullptr,
                            .refused = {}};
  if (!decode(frame.payload, announcement)) {
    return hooks_.fault(
        frame.peer,
        {ErrorCode::kProtocol,
         fmt::format("rank {} announced a message that makes no sense", frame.peer), frame.peer});
  }
  const core::GroupId group = group_of(frame.header.group);
  std::unique_lock lock(mutex_);
  if (removed_.contains(group)) {
    return refuse(
        frame.peer, group, announcement.sequence,
        {ErrorCode::kShutdown,
         fmt::format("{} has removed group {}", world_.describe(world_.rank), group), world_.rank});
  }
  Mailbox& mailbox = mailboxes_[group];
  if (!mailbox.has_room()) {
    lock.unlock();
    return hooks_.fault(
        frame.peer, {ErrorCode::kProtocol,
                     fmt::format("more than {} messages wait that nobody receives", Mailbox::kMost),
                     frame.peer});
  }
  for (const Mailbox::Match& found : mailbox.announce(std::move(announcement))) {
    match(found.receive, found.announcement);
  }
}

void MessageDoor::refused(const ControlFrame& frame) {
  const std::optional<Error> error = decode_refusal(frame.payload);
  if (!error) {
    return hooks_.fault(
        frame.peer,
        {ErrorCode::kProtocol, fmt::format("rank {} refused a message without sense", frame.peer),
         frame.peer});
  }
  const core::GroupId group = group_of(frame.header.group);
  const std::uint64_t sequence = frame.header.sequence;
  const std::lock_guard lock(mutex_);
  const bool own = sequence >> kSenderShift == static_cast<std::uint64_t>(world_.rank);
  if (own || on_board_.contains({group, sequence})) {
    return board_.fail(frame.header.group, sequence, *error);
  }
  if (!removed_.contains(group)) mailboxes_[group].refuse(sequence, *error);
}

void MessageDoor::refuse(int peer, core::GroupId group, std::uint64_t sequence,
                         const Error& error) {
  board_.send_control({peer,
                       {.epoch = world_.epoch,
                        .group = wire_group(group, Door::kMessage),
                        .sequence = sequence,
                        .kind = FrameKind::kRefuse},
                       encode_refusal(error)});
}

void MessageDoor::lose(int peer, const Error& cause) {
  const std::lock_guard lock(mutex_);
  lost_.emplace(peer, cause);
  for (auto& [group, mailbox] : mailboxes_) {
    for (const MessagePtr& job : mailbox.take_receives_from(peer)) settle(job, cause);
  }
}

void MessageDoor::end(core::GroupId group, int peer, const Error& cause) {
  const std::lock_guard lock(mutex_);
  if (peer == world_.rank || removed_.contains(group)) return;
  ended_.emplace(std::pair{group, peer}, cause);
  for (const MessagePtr& job : mailboxes_[group].take_receives_from(peer)) settle(job, cause);
}

// --- the end -----------------------------------------------------------------------------

void MessageDoor::expire(const MessagePtr& job) {
  const std::lock_guard lock(mutex_);
  give_up(job, {ErrorCode::kTimedOut,
                fmt::format("{} on {} did not end within {} ms", title_of(*job, world_),
                            world_.describe(world_.rank), job->message.time_limit.count()),
                job->peer});
}

// The other side hears of it; a receive that nobody has matched concerns nobody else.
void MessageDoor::give_up(const MessagePtr& job, const Error& error) {
  const core::GroupId group = job->group->id;
  if (on_board_.contains({group, job->sequence})) {
    if (job->sends) refuse(job->peer, group, job->sequence, error);
    return board_.fail(wire_group(group, Door::kMessage), job->sequence, error);
  }
  if (!job->sends) mailboxes_[group].withdraw(job);
  if (job->sends && job->peer == world_.rank) mailboxes_[group].refuse(job->sequence, error);
  settle(job, error);
}

void MessageDoor::remove(const GroupPtr& group) {
  const std::lock_guard lock(mutex_);
  removed_.insert(group->id);
  const Error error{ErrorCode::kShutdown,
                    fmt::format("{} has removed group {}", world_.describe(world_.rank), group->id),
                    world_.rank};
  std::vector<MessagePtr> pending = mailboxes_[group->id].take_all();
  for (const auto& [name, job] : on_board_) {
    if (name.first == group->id) pending.push_back(job);
  }
  for (const MessagePtr& job : pending) give_up(job, error);
  mailboxes_.erase(group->id);
  std::erase_if(ended_, [&](const auto& entry) { return entry.first.first == group->id; });
  board_.forget_group(wire_group(group->id, Door::kMessage));
}

void MessageDoor::close(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = error;
}

void MessageDoor::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  for (auto& [group, mailbox] : mailboxes_) {
    for (const MessagePtr& job : mailbox.take_all()) settle(job, error);
  }
}

void MessageDoor::settle(const MessagePtr& job, const core::Status& status) {
  worker_.post([this, job, status] { finish(job, status); });
}

// Worker.
void MessageDoor::finish(const MessagePtr& job, const core::Status& status) {
  if (std::exchange(job->over, true)) return;
  {
    const std::lock_guard lock(mutex_);
    const auto found = on_board_.find({job->group->id, job->sequence});
    if (found != on_board_.end() && found->second == job) on_board_.erase(found);
  }
  if (job->deadline) deadlines_.remove(*job->deadline);
  job->message.keep_alive.reset();
  const int source = job->sends ? -1 : job->group->position_of(job->peer);
  job->handle.complete(status ? status : outcome_of(title_of(*job, world_), status), -1,
                       status ? source : -1);
  if (pending_.fetch_sub(1) == 1) hooks_.idle();
}

}  // namespace fasthorovod::ops
