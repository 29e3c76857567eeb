// OrderedDoor::run(): an operation in its caller's thread (docs/design.md, "Who drives what").
#include <algorithm>
#include <chrono>
#include <utility>

#include "ops/ordered_check.h"
#include "ops/ordered_door.h"

namespace fasthorovod::ops {
namespace {

// How long run() keeps an operation to itself before all is set up that watches over it.
constexpr std::chrono::milliseconds kRunAlone{100};
// More than that between hosts is several pieces (host_layout.h): then the team's part of one and
// the lane's of another are done at a time, on cores of their own.
constexpr std::size_t kMostOnOneCore = 1U << 20;

}  // namespace

core::Status OrderedDoor::run(OrderedOperation operation) {
  bool has_turn = true;
  core::Result<JobPtr> job = take(std::move(operation), has_turn);
  if (!job) return std::move(job).error();
  std::optional<core::Status> outcome;
  if (has_turn) {
    outcome = run_with_turn(*job);
    worker_.give_back();
  } else {
    hooks_.waits();
  }
  if (!outcome) outcome = (*job)->handle().wait();
  // The engine may go as soon as nobody is here any more.
  const std::lock_guard lock(mutex_);
  if (--callers_ == 0) no_more_callers_.notify_all();
  return *std::move(outcome);
}

void OrderedDoor::await_callers() {
  std::unique_lock lock(mutex_);
  no_more_callers_.wait(lock, [this] { return callers_ == 0; });
}

// None: its handle tells.
std::optional<core::Status> OrderedDoor::run_with_turn(const JobPtr& job) {
  Queue& queue = queues_[job->group().id];
  if (may_run_here(*job, queue)) {
    if (std::optional<core::Status> outcome = run_here(job, queue)) return outcome;
  }
  (void)job->handle();
  hooks_.waits();
  if (queue.in_flight.contains(job->sequence())) {
    watch(job);
    return std::nullopt;
  }
  TakenThreads taken;
  take_threads(*job, taken);
  watch(job);
  enqueue(job);
  if (taken.has_any()) drive(job, taken);
  return std::nullopt;
}

// Where hosts share the work with the network, it takes both or the team alone: the lane alone
// would save no hand-over.
void OrderedDoor::take_threads(const OrderedJob& job, TakenThreads& taken) {
  const OrderedOperation& operation = job.operation();
  if (!routes_.inside_hosts(operation.kind, job.group().members)) {
    return taken.take(hooks_.lanes());
  }
  if (operation.output.size() > kMostOnOneCore) return;
  taken.take(routes_.team());
  if (taken.has_any() && lane_watch_.waits_are_short()) taken.take(hooks_.lanes());
}

// Does what the threads would, and runs what is posted to the worker, until the operation is over.
void OrderedDoor::drive(const JobPtr& job, TakenThreads& taken) {
  const core::TimePoint until = core::Clock::now() + kRunAlone;
  lane_watch_.begin();
  while (!job->over && !taken.stopping()) {
    if (worker_.wanted().load()) {
      worker_.serve();
    } else if (taken.step()) {
      lane_watch_.restart();
    } else if (!lane_watch_.wait()) {
      const core::Duration left = until - core::Clock::now();
      if (left <= core::Duration::zero()) break;
      if (taken.sleep(worker_.wanted(), left)) lane_watch_.restart();
    }
  }
  taken.give_back(board_.in_flight() > 0);
}

// Its group has nothing else under way, and nothing is known against it.
bool OrderedDoor::may_run_here(const OrderedJob& job, Queue& queue) const {
  const OrderedOperation& operation = job.operation();
  if (operation.output.empty() || failed_ || !left_.empty()) return false;
  if (operation.kind != OrderedKind::kAllreduce || removed_.contains(job.group().id)) return false;
  if (!queue.on_one_host) {
    queue.on_one_host = routes_.stays_on_host(operation.kind, job.group().members);
  }
  return *queue.on_one_host && !queue.end && queue.waiting.empty() && queue.in_flight.empty();
}

// None: it is in flight, or nothing has happened.
std::optional<core::Status> OrderedDoor::run_here(const JobPtr& job, Queue& queue) {
  const core::TimePoint now = core::Clock::now();
  const OrderedOperation& operation = job->operation();
  if (operation.time_limit.count() > 0) job->limit = now + operation.time_limit;
  const core::TimePoint until =
      std::min(job->limit.value_or(core::TimePoint::max()), now + kRunAlone);
  job->prepare(pool_, true);
  const HostKind kind{wire_group(operation.group, Door::kOrdered), operation.output.size(),
                      operation.type, operation.reduction};
  const HostCall call{job->sequence(), fingerprint(operation, job->sequence()), job->input(),
                      operation.output};
  const std::function<Operation()> whole = [this, &job] { return transfer(job); };
  core::Status status;
  switch (routes_.run(kind, call, whole, worker_.wanted(), until, status)) {
    case HostPath::Run::kNoSpace:
      return std::nullopt;
    case HostPath::Run::kGoesOn:
      queue.last_seen = job->sequence();
      queue.in_flight.emplace(job->sequence(), job);
      count(*job);
      return std::nullopt;
    case HostPath::Run::kOver:
      break;
  }
  queue.last_seen = job->sequence();
  count(*job);
  if (status) job->finish();
  finish(job, status);
  return job->outcome(status);
}

}  // namespace fasthorovod::ops
