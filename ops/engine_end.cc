// How an engine ends: by a fault, whose verdict all ranks share, or in good order.
#include <fmt/format.h>

#include <utility>

#include "ops/engine_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;

namespace {

// How long shutdown waits for operations that all ranks have started already.
constexpr std::chrono::milliseconds kDrainWait{2000};
// How long the goodbye may take to leave.
constexpr std::chrono::milliseconds kFlushWait{1000};

}  // namespace

void EngineImpl::announce() {
  negotiator_.announce();
  if (watch_.enabled() && !watching_.exchange(true)) watch_progress();
}

core::Result<Handle> EngineImpl::watched(core::Result<Handle> handle) {
  if (handle) watch_pending();
  return handle;
}

void EngineImpl::watch_pending() {
  if (watch_.enabled() && !watching_.exchange(true)) {
    control_->post([this] { watch_progress(); });
  }
}

// Runs while something is pending here: the coordinator notices what some rank did not submit, and
// ordered operations have time limits; this notices a rank that stopped in the middle, or a
// coordinator that did. Without the coordinator nobody can call the roll.
void EngineImpl::watch_progress() {
  look_for_progress();
  if (!has_pending()) {
    watching_ = false;
    if (!has_pending() || watching_.exchange(true)) return;
  }
  if (arbiter_.concluded() || coordinator_left_) return;  // for good: watching_ stays set
  control_->call_after(watch_.interval(), [this] { watch_progress(); });
}

bool EngineImpl::has_pending() const {
  return !(pending_.empty() && ordered_.idle() && messages_.idle());
}

void EngineImpl::look_for_progress() {
  const bool watches = has_pending() && !arbiter_.concluded() && !coordinator_left_;
  if (watch_.stalled(watches, progress(), core::Clock::now())) {
    std::optional<ChunkBoard::Wait> wait;
    if (hosts_ != nullptr) wait = hosts_->waiting();
    if (!wait) wait = board_.waiting();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(watch_.limit()).count();
    arbiter_.fault(
        {ErrorCode::kStalled,
         fmt::format("nothing has moved on {} for {} s: {}", world_.describe(world_.rank), seconds,
                     wait ? wait->text : "no plan comes for what was submitted"),
         wait ? wait->peer : -1});
  }
}

std::uint64_t EngineImpl::progress() const {
  const transport::LaneStatistics lane = lanes_->statistics();
  const std::uint64_t steps = hosts_ == nullptr ? 0 : hosts_->progress();
  return lane.bytes_sent + lane.bytes_received + steps + executor_.items() +
         negotiator_.plans_applied() + ordered_.operations() + messages_.messages();
}

// From a lane. What a process set runs was agreed upon before it started.
void EngineImpl::disagree(const Disagreement& disagreement) {
  if (!is_process_set(disagreement.group)) return ordered_.disagree(disagreement);
  report_fault(disagreement.peer,
               {ErrorCode::kProtocol, fmt::format("{} started {} where the plan has {}",
                                                  world_.describe(disagreement.peer),
                                                  disagreement.peers, disagreement.own)});
}

// From a lane.
void EngineImpl::report_fault(int peer, Error error) {
  error.culprit = peer;
  control_->post([this, error = std::move(error)] {
    if (error.code != ErrorCode::kPeerLost) return arbiter_.fault(error);
    arbiter_.lost(error);
  });
}

// What it was adding can not be undone, so this rank can not go on.
void EngineImpl::auxiliary_lost(std::size_t index, const std::string& how) {
  const std::optional<ChunkBoard::Wait> wait = board_.waiting();
  report_fault(world_.rank,
               {ErrorCode::kPeerLost,
                fmt::format("auxiliary {} of {} {}{}", index, world_.describe(world_.rank), how,
                            wait && !wait->title.empty() ? " during " + wait->title : "")});
}

// After what the worker was told before: operations that failed by a cause of their own, of which
// the verdict may be a consequence (a rank that ended because of that), keep it.
void EngineImpl::conclude(const Error& verdict) {
  log_.error(verdict.message);
  verdict_ = verdict;
  worker_.post([this, verdict] { control_->post([this, verdict] { fail_everything(verdict); }); });
}

void EngineImpl::fail_everything(const Error& error) {
  // Nobody may touch the callers' memory once their handles are done.
  if (lanes_ != nullptr) lanes_->stop();
  if (hosts_ != nullptr) hosts_->stop(error);
  board_.fail_all(error);
  executor_.fail(error);
  close_ordered(error);
  ordered_.fail(error);
  messages_.fail(error);
  fail_unplanned(error);
}

void EngineImpl::fail_unplanned(const Error& error) {
  pending_.close(error);
  for (const EntryPtr& entry : pending_.all()) {
    if (!entry->planned) worker_.post([this, entry, error] { pending_.complete(entry, error); });
  }
}

Error EngineImpl::shut_down_here() const {
  return {ErrorCode::kShutdown, "this rank has shut down", world_.rank};
}

void EngineImpl::shutdown() {
  const std::lock_guard lock(shutdown_mutex_);
  if (shut_down_) return;
  shut_down_ = true;
  if (engine_thread_.joinable()) {
    control_->post([this] { drain(); });
    engine_thread_.join();
  }
  // A verdict that was not carried out yet is still why operations fail.
  fail_everything(verdict_.value_or(shut_down_here()));
  worker_.stop();
  ordered_.await_callers();
}

// What was planned runs on all ranks: leaving in its middle would look like a crash to them. Flows
// that are being opened are waited for, so that a peer can tell when it has seen the last one end.
void EngineImpl::drain() {
  const Error error = shut_down_here();
  fail_unplanned(error);
  close_ordered(error);
  draining_ = true;
  awaits_idle_ = true;
  if (arbiter_.concluded() || idle()) return leave();
  control_->call_after(kDrainWait, [this] { leave(); });
}

void EngineImpl::leave() {
  if (leaving_) return;
  leaving_ = true;
  arbiter_.retire();
  // After a verdict nobody leaves in good order: who does not know it yet must not think so.
  if (arbiter_.concluded()) return end_control();
  const core::Goodbye message{negotiator_.plans_applied(), first_left_};
  if (world_.rank == 0) {
    broadcast(message);
  } else {
    (void)send(0, message);
  }
  end_control();
}

void EngineImpl::end_control() {
  control_->flush(kFlushWait);
  control_->stop();
}

void EngineImpl::now_idle() {
  if (draining_) {
    if (idle()) leave();
    return;
  }
  negotiator_.pump();
}

}  // namespace fasthorovod::ops
