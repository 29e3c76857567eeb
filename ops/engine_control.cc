// What other ranks say, and what this one tells them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "ops/engine_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;

namespace {

// Of how many failed operations rank 0 remembers that it has told the others.
constexpr std::size_t kFailuresKept = 4096;
// How long flows that a rank opened before it left may take to be there.
constexpr std::chrono::milliseconds kLastFlowsWait{1000};
// How long a rank that reports a failed operation waits for rank 0, which may be leaving, to tell
// all; then it believes itself.
constexpr std::chrono::milliseconds kWordWait{500};

}  // namespace

void EngineImpl::receive(int rank, std::span<const std::byte> bytes) {
  core::Result<core::ControlMessage> message = core::decode(bytes);
  if (!message) {
    Error error = std::move(message).error().with_context(
        fmt::format("control message of {}", world_.describe(rank)));
    error.culprit = rank;
    return arbiter_.fault(std::move(error));
  }
  if (arbiter_.concluded()) return;  // what comes after the verdict changes nothing
  if (auto* submissions = std::get_if<core::Submissions>(&*message)) {
    negotiator_.submitted(rank, *submissions);
  } else if (auto* plan = std::get_if<core::Plan>(&*message)) {
    if (!draining_) negotiator_.apply(std::move(*plan));
  } else if (auto* report = std::get_if<core::FaultReport>(&*message)) {
    arbiter_.fault(std::move(report->error));
  } else if (auto* abort = std::get_if<core::Abort>(&*message)) {
    arbiter_.verdict(abort->error);
  } else if (std::holds_alternative<core::RollCall>(*message)) {
    arbiter_.roll_called();
    (void)send(rank, core::Present{});
  } else if (std::holds_alternative<core::Present>(*message)) {
    arbiter_.present(rank);
  } else if (auto* failed = std::get_if<core::OperationFailed>(&*message)) {
    if (world_.rank != 0) return apply_failure(*failed);
    operation_failed(*failed);
  } else if (auto* meeting = std::get_if<core::Meet>(&*message)) {
    introduce(*meeting);
  } else if (auto* departure = std::get_if<core::Departed>(&*message)) {
    departed(departure->rank, shut_down_words(departure->rank));
  } else {
    goodbye(rank, std::get<core::Goodbye>(*message));
  }
}

void EngineImpl::goodbye(int rank, const core::Goodbye& message) {
  control_->expect_close(rank);
  if (world_.rank == 0) {
    if (first_left_ < 0) first_left_ = rank;
    if (message.plans_applied < negotiator_.last_plan_of(rank)) {
      return arbiter_.fault(left_in_the_middle(rank));
    }
    negotiator_.left(rank);
    broadcast(core::Departed{rank});
    return departed(rank, shut_down_words(rank));
  }
  // Without its coordinator this rank can start nothing new; what all ranks have started already
  // still ends well.
  std::string text = fmt::format("{}, the coordinator, has shut down", world_.describe(rank));
  const bool followed = message.first_left > 0 && message.first_left < world_.size &&
                        message.first_left != world_.rank;
  if (followed)
    text = fmt::format("{} shut down, and after it {}", world_.describe(message.first_left), text);
  fail_unplanned({ErrorCode::kShutdown, std::move(text), followed ? message.first_left : rank});
  coordinator_left_ = true;  // the ordered door goes on among those that are there
  departed(rank, shut_down_words(rank));
}

// Who follows another one that left is not to blame: it may have ended because of that.
Error EngineImpl::left_in_the_middle(int rank) const {
  std::string text = fmt::format("{} shut down while the others had started an operation with it",
                                 world_.describe(rank));
  if (first_left_ != rank) {
    text = fmt::format("{} shut down, and after it {}", world_.describe(first_left_), text);
  }
  return {ErrorCode::kShutdown, std::move(text), first_left_};
}

Error EngineImpl::shut_down_words(int rank) const {
  return {ErrorCode::kShutdown, fmt::format("{} has shut down", world_.describe(rank)), rank};
}

// A rank left in good order. What it sent before may still be in its flows, or in flows that are
// just being opened; those that do not come any more are not waited for.
void EngineImpl::departed(int rank, const Error& words) {
  if (rank < 0 || rank >= world_.size || rank == world_.rank) return;
  arbiter_.left(rank);
  ordered_.lose(rank, words);
  const int flows = control_->flows_with(rank);
  const bool is_new = opened_.emplace(rank, 0).second;
  board_.depart(rank, words, is_new && !has_flows() ? 0 : flows);
  if (opened_[rank] == 0) return;
  control_->call_after(kLastFlowsWait, [this, rank, flows, words] {
    const int missing = std::exchange(opened_[rank], 0);
    awaited_flows_ -= missing;
    board_.depart(rank, words, flows - missing);
    if (draining_) now_idle();
  });
}

void EngineImpl::drop_group(core::GroupId group, bool tell) {
  const GroupPtr removed = groups_.remove(group);
  if (removed == nullptr) return;
  ordered_.remove(removed, tell);
  messages_.remove(removed);
}

// Opening flows takes both sides, and the other one may come to this operation much later.
void EngineImpl::meet(int peer) {
  {
    const std::lock_guard lock(meet_mutex_);
    if (!met_.insert(peer).second) return;
  }
  control_->post([this, peer] {
    open_flows(peer);
    introduce({world_.rank, peer});
  });
}

void EngineImpl::open_flows(int peer) {
  const bool possible = peer >= 0 && peer < world_.size && peer != world_.rank;
  if (!possible || opened_.contains(peer)) return;
  if (has_flows()) {
    opened_.emplace(peer, 0);
    return lanes_->add_peer(peer);
  }
  const int flows = control_->flows_with(peer);
  opened_.emplace(peer, flows);
  awaited_flows_ += flows;
  control_->open_flows(peer, flows);
}

void EngineImpl::introduce(const core::Meet& message) {
  if (message.to == world_.rank) return open_flows(message.from);
  (void)send(world_.rank == 0 ? message.to : 0, message);
}

void EngineImpl::apply_failure(const core::OperationFailed& message) {
  ordered_.failed(message);
  if (message.ends_group) {
    messages_.end(message.group, message.error.culprit, message.error);
  }
}

// The first report of an operation counts, so that all members tell the same story. That a group
// ended is told even so. The others first: rank 0 may end because of what it hears.
void EngineImpl::operation_failed(const core::OperationFailed& message) {
  if (arbiter_.concluded()) return;
  if (coordinator_left_) return apply_failure(message);
  if (world_.rank != 0) {
    (void)send(0, message);
    return control_->call_after(kWordWait, [this, message] { apply_failure(message); });
  }
  const bool is_first = failures_.emplace(message.group, message.sequence).second;
  if (!is_first && !message.ends_group) return;
  if (failures_.size() > kFailuresKept) failures_.erase(failures_.begin());
  for (const int member : message.members) {
    if (member != 0 && member < world_.size) (void)send(member, message);
  }
  if (std::ranges::count(message.members, 0) > 0) apply_failure(message);
}

// Only shutdown waits for it: nothing wakes the engine thread for each operation.
void EngineImpl::ordered_idle() {
  if (awaits_idle_) control_->post([this] { now_idle(); });
}

void EngineImpl::close_ordered(const Error& error) {
  ordered_.close(error);
  messages_.close(error);
}

// One timer at a time: a later deadline waits for the earlier timer, which sets the next one.
void EngineImpl::wake_at(core::TimePoint when) {
  if (wake_ && *wake_ <= when) return;
  wake_ = when;
  control_->call_after(when - core::Clock::now(), [this, when] {
    if (wake_ != when) return;  // an earlier timer took over
    wake_.reset();
    deadlines_.expire(core::Clock::now());
  });
}

void EngineImpl::broadcast(const core::ControlMessage& message) {
  for (int rank = 1; rank < world_.size; ++rank) (void)send(rank, message);
}

// A rank that is gone is reported by on_lost; most callers have nobody left to tell.
core::Status EngineImpl::send(int rank, const core::ControlMessage& message) {
  core::Status sent = control_->send(rank, core::encode(message));
  if (!sent) log_.debug(sent.error().message);
  return sent;
}

}  // namespace fasthorovod::ops
