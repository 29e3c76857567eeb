// OrderedDoor::run(): an operation in its caller's thread (docs/design.md, "Who drives what").
#include <algorithm>
#include <chrono>
#include <utility>

#include "ops/ordered_door.h"

namespace fasthorovod::ops {
namespace {

// How long run() keeps an operation to itself before all is set up that watches over it.
constexpr std::chrono::milliseconds kRunAlone{100};

}  // namespace

core::Status OrderedDoor::run(OrderedOperation operation) {
  bool has_turn = true;
  core::Result<JobPtr> job = take(std::move(operation), has_turn);
  if (!job) return std::move(job).error();
  if (has_turn) {
    run_with_turn(*job);
    worker_.give_back();
  } else {
    hooks_.waits();
  }
  core::Status status = (*job)->handle().wait();
  // The engine may go as soon as nobody is here any more.
  const std::lock_guard lock(mutex_);
  if (--callers_ == 0) no_more_callers_.notify_all();
  return status;
}

void OrderedDoor::await_callers() {
  std::unique_lock lock(mutex_);
  no_more_callers_.wait(lock, [this] { return callers_ == 0; });
}

void OrderedDoor::run_with_turn(const JobPtr& job) {
  if (may_run_here(job) && run_here(job)) return;
  hooks_.waits();
  if (queues_[job->group().id].in_flight.contains(job->sequence())) return watch(job);
  // Where hosts share the work with the network, several threads have their part in it.
  transport::LaneSet& lanes = hooks_.lanes();
  const bool drives =
      !routes_.inside_hosts(job->operation().kind, job->group().members) && lanes.try_take();
  watch(job);
  enqueue(job);
  if (drives) drive(job, lanes);
}

// Makes the lane's turns and runs what is posted to the worker until the operation is over. With
// nothing to do it sleeps in the lane's poll, which a post ends, too.
void OrderedDoor::drive(const JobPtr& job, transport::LaneSet& lanes) {
  const core::TimePoint until = core::Clock::now() + kRunAlone;
  lane_watch_.begin();
  while (!job->over && !lanes.stopping()) {
    if (worker_.wanted().load()) {
      worker_.serve();
    } else if (lanes.step(std::chrono::milliseconds(0))) {
      lane_watch_.restart();
    } else if (!lane_watch_.wait()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - core::Clock::now());
      if (left.count() <= 0) break;
      if (lanes.step(left)) lane_watch_.restart();
    }
  }
  lanes.give_back(board_.in_flight() > 0);
}

// Its group has nothing else under way, and nothing is known against it.
bool OrderedDoor::may_run_here(const JobPtr& job) {
  const OrderedOperation& operation = job->operation();
  if (operation.output.empty() || failed_ || !left_.empty()) return false;
  if (operation.kind != OrderedKind::kAllreduce || removed_.contains(job->group().id)) return false;
  Queue& queue = queues_[job->group().id];
  if (!queue.on_one_host) {
    queue.on_one_host = routes_.stays_on_host(operation.kind, job->group().members);
  }
  if (!*queue.on_one_host) return false;
  if (queue.end || !queue.waiting.empty() || !queue.in_flight.empty()) return false;
  const std::lock_guard lock(mutex_);
  return !counts_[job->group().id].doomed.contains(job->sequence());
}

// True: it is over. Else it is in flight, or nothing has happened.
bool OrderedDoor::run_here(const JobPtr& job) {
  const core::TimePoint now = core::Clock::now();
  const std::chrono::milliseconds limit = job->operation().time_limit;
  if (limit.count() > 0) job->limit = now + limit;
  const core::TimePoint until =
      std::min(job->limit.value_or(core::TimePoint::max()), now + kRunAlone);
  job->prepare(pool_, true);
  const Operation operation = transfer(job);
  core::Status status;
  switch (routes_.run(operation, job->input(), worker_.wanted(), until, status)) {
    case HostPath::Run::kNoSpace:
      return false;
    case HostPath::Run::kGoesOn: {
      Queue& queue = queues_[job->group().id];
      queue.last_seen = job->sequence();
      queue.in_flight.emplace(job->sequence(), job);
      count(*job);
      return false;
    }
    case HostPath::Run::kOver:
      break;
  }
  queues_[job->group().id].last_seen = job->sequence();
  count(*job);
  if (status) job->finish();
  finish(job, status);
  return true;
}

}  // namespace fasthorovod::ops
