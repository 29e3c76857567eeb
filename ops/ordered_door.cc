#include "ops/ordered_door.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "ops/ordered_check.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;

namespace {

// A rank whose own peers are all ready does not know who is late; it gives those who do this long
// to say so first.
constexpr std::chrono::milliseconds kLetOthersName{300};
// How long what a mate did before it left may take to be seen.
constexpr std::chrono::milliseconds kLastSteps{1000};
// A mate that has not begun what runs inside the host hears of it over the network after this time.
constexpr std::chrono::milliseconds kTellMates{300};
constexpr std::size_t kFailuresKept = 1024;

// The fingerprint says all of what a rank sends to which other one.
bool is_told_whole(OrderedKind kind) {
  return kind == OrderedKind::kAllreduce || kind == OrderedKind::kBarrier;
}

std::size_t ranks_on_host(const core::World& world) {
  const int own = world.host_of_rank[static_cast<std::size_t>(world.rank)];
  return static_cast<std::size_t>(std::ranges::count(world.host_of_rank, own));
}

}  // namespace

OrderedDoor::OrderedDoor(const core::World& world, int flows, const core::AllreducePlan& allreduces,
                         const GroupTable& groups, ChunkBoard& board, Routes& routes,
                         Worker& worker, DeadlineQueue& deadlines, Hooks hooks)
    : world_(world),
      flows_(flows),
      allreduces_(allreduces),
      groups_(groups),
      board_(board),
      routes_(routes),
      worker_(worker),
      deadlines_(deadlines),
      hooks_(std::move(hooks)),
      lane_watch_(ranks_on_host(world)) {}

core::Result<Handle> OrderedDoor::submit(OrderedOperation operation) {
  bool has_turn = false;
  core::Result<JobPtr> job = take(std::move(operation), has_turn);
  if (!job) return std::move(job).error();
  return (*job)->handle();
}

// Numbers an operation and posts it to the worker; or, if `has_turn` is set, for run(), and the
// worker's turn is to be had, leaves it to the caller, who has the turn then.
// What is doomed goes to the worker.
core::Result<OrderedDoor::JobPtr> OrderedDoor::take(OrderedOperation&& operation, bool& has_turn) {
  core::Result<GroupPtr> group = groups_.find(operation.group);
  if (!group) return std::move(group).error();
  if (core::Status status = complete(operation, **group); !status) {
    return std::move(status).error();
  }
  const std::lock_guard lock(mutex_);
  Count& count = counts_[operation.group];
  if (closed_) return refusal(operation, count);
  if (count.owed) return *std::exchange(count.owed, std::nullopt);
  auto job = std::make_shared<OrderedJob>(std::move(operation), *std::move(group), ++count.last);
  pending_.fetch_add(1);
  if (has_turn) ++callers_;
  // Under the lock, so that the group's operations come to the queues in their order.
  has_turn = has_turn && count.doomed.empty() && worker_.try_take();
  if (has_turn) return job;
  (void)job->handle();
  watch(job);
  worker_.post([this, job] { enqueue(job); });
  return job;
}

// What dooms an operation was there before the end, which may be a consequence of it.
Error OrderedDoor::refusal(const OrderedOperation& operation, const Count& count) const {
  const auto doomed = count.doomed.find(count.last + 1);
  if (doomed != count.doomed.end()) return doomed->second;
  const std::string title = operation.title.empty() ? describe(operation) : operation.title;
  return Error(*closed_).with_context(title);
}

void OrderedDoor::enqueue(const JobPtr& job) {
  // Removed by another thread meanwhile.
  if (removed_.contains(job->group().id)) return finish(job, removal_of(job->group()));
  Queue& queue = queues_[job->group().id];
  queue.last_seen = job->sequence();
  if (failed_) return finish(job, *failed_);
  if (const std::optional<Error> doom = take_doom(*job)) {
    note_failed(job->group().id, job->sequence());
    return finish(job, *doom);
  }
  if (queue.end && job->sequence() >= queue.end->first) {
    return finish(job, queue.end->error);
  }
  queue.waiting.push_back(job);
  start_what_fits(job->group().id);
}

void OrderedDoor::start_what_fits(core::GroupId group) {
  const auto found = queues_.find(group);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  while (!queue.waiting.empty() && queue.in_flight.size() < kWindow) {
    const JobPtr job = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.in_flight.emplace(job->sequence(), job);
    if (start(job, queue.in_flight.size() == 1)) continue;
    queue.in_flight.erase(job->sequence());
    queue.waiting.push_front(job);
    return;
  }
}

void OrderedDoor::retry() {
  worker_.post([this] {
    std::vector<core::GroupId> groups;
    groups.reserve(queues_.size());
    for (const auto& [group, queue] : queues_) groups.push_back(group);
    for (const core::GroupId group : groups) start_what_fits(group);
  });
}

// False: there is no shared memory for it now.
bool OrderedDoor::start(const JobPtr& job, bool alone) {
  const OrderedKind kind = job->operation().kind;
  const bool inside_hosts = routes_.inside_hosts(kind, job->group().members);
  Shape shape;
  const Algorithm* algorithm = nullptr;
  try {
    job->prepare(pool_, inside_hosts);
    shape = job->shape(flows_);
    algorithm = &choose(kind, shape, allreduces_);
    if (kind == OrderedKind::kAllreduce) shape.chunk_bytes = chunk_bytes(*algorithm, shape, flows_);
    if (!inside_hosts) job->find_scratch(pool_, scratch_bytes(*algorithm, shape));
  } catch (const std::bad_alloc&) {
    const Error error{
        ErrorCode::kUnavailable,
        fmt::format("{}: no memory on {}", job->title(), world_.describe(world_.rank)),
        world_.rank};
    fail_and_report(job, error);
    if (!job->over) ended(job, error);  // it never reached the board
    return true;
  }
  return launch(job, {*algorithm, shape, job->input(), alone});
}

Operation OrderedDoor::transfer(const JobPtr& job) {
  Operation operation = job->transfer(world_.epoch);
  operation.done = [this, job](core::Status status) {
    worker_.post([this, job, status = std::move(status)] { ended(job, status); });
  };
  return operation;
}

void OrderedDoor::count(const OrderedJob& job) {
  operations_.fetch_add(1, std::memory_order_relaxed);
  payload_bytes_.fetch_add(std::max(job.operation().input.size(), job.operation().output.size()),
                           std::memory_order_relaxed);
}

bool OrderedDoor::launch(const JobPtr& job, const Routes::Start& how) {
  Operation operation = transfer(job);
  operation.early = how.alone && is_told_whole(job->operation().kind);
  if (!routes_.start(std::move(operation), how, hooks_.need_flows)) return false;
  count(*job);
  fail_if_lost(job);
  return true;
}

// The board has let go of the job's memory.
void OrderedDoor::ended(const JobPtr& job, const core::Status& status) {
  const core::GroupId group = job->group().id;
  if (const auto found = queues_.find(group); found != queues_.end()) {
    found->second.in_flight.erase(job->sequence());
    if (!status) note_failed(group, job->sequence());
  }
  if (status) job->finish();
  finish(job, status);
  start_what_fits(group);
}

void OrderedDoor::finish(const JobPtr& job, const core::Status& status) {
  if (std::exchange(job->over, true)) return;
  if (job->deadline) deadlines_.remove(*job->deadline);
  job->complete(status, pool_);
  if (pending_.fetch_sub(1) == 1) hooks_.idle();
}

void OrderedDoor::note_failed(core::GroupId group, std::uint64_t sequence) {
  std::set<std::uint64_t>& failed = queues_[group].failed;
  failed.insert(sequence);
  if (failed.size() > kFailuresKept) failed.erase(failed.begin());
}

// --- one operation fails -----------------------------------------------------------------

void OrderedDoor::disagree(const Disagreement& disagreement) {
  core::Result<GroupPtr> group = groups_.find(group_of(disagreement.group));
  if (!group) return;
  std::vector<std::pair<int, std::string>> sides{{world_.rank, disagreement.own},
                                                 {disagreement.peer, disagreement.peers}};
  std::ranges::sort(sides);
  hooks_.report(
      {.group = (*group)->id,
       .sequence = disagreement.sequence,
       .members = (*group)->members,
       .error = {ErrorCode::kMismatch,
                 fmt::format("ranks disagree about operation {} of group {}; {}: {}; {}: {}",
                             disagreement.sequence, (*group)->id, world_.describe(sides[0].first),
                             sides[0].second, world_.describe(sides[1].first), sides[1].second),
                 -1}});
}

void OrderedDoor::lose(int rank, const Error& words) {
  worker_.post([this, rank, words] {
    left_.emplace(rank, words);
    std::vector<JobPtr> in_flight;
    for (const auto& [group, queue] : queues_) {
      for (const auto& [sequence, job] : queue.in_flight) in_flight.push_back(job);
    }
    for (const JobPtr& job : in_flight) fail_if_lost(job);
  });
}

// A mate that left begins nothing any more, but what it did last may not have been seen here yet.
void OrderedDoor::fail_if_lost(const JobPtr& job) {
  if (left_.empty()) return;
  const auto look = [this, job] {
    const std::uint32_t wire = wire_group(job->group().id, Door::kOrdered);
    for (const int rank : routes_.awaited_mates(wire, job->sequence())) {
      const auto found = left_.find(rank);
      if (job->over || found == left_.end()) continue;
      const Error& words = found->second;
      return depart(
          {wire,
           job->sequence(),
           {words.code, fmt::format("during {}: {}", job->title(), words.message), rank}});
    }
  };
  deadlines_.add(core::Clock::now() + kLastSteps, [this, look] { worker_.post(look); });
}

// The other members may not be neighbours of the rank that left. Here, too, the operation fails by
// the coordinator's word: whoever ends because of that must not be gone before the others know why.
void OrderedDoor::depart(const Departure& departure) {
  core::Result<GroupPtr> group = groups_.find(group_of(departure.group));
  if (!group) return;
  hooks_.report({(*group)->id, departure.sequence, (*group)->members, departure.error});
}

void OrderedDoor::failed(const core::OperationFailed& message) {
  worker_.post([this, message] {
    if (removed_.contains(message.group)) return;
    if (message.ends_group) {
      apply_end(message.group, message.sequence, message.error);
    } else {
      apply(message.group, message.sequence, message.error);
    }
  });
}

void OrderedDoor::apply(core::GroupId group, std::uint64_t sequence, const Error& error) {
  Queue& queue = queues_[group];
  if (queue.failed.contains(sequence)) return;
  routes_.fail(wire_group(group, Door::kOrdered), sequence, error);
  if (queue.in_flight.contains(sequence)) return;  // the board ends it
  if (sequence > queue.last_seen) return doom(group, sequence, error);
  note_failed(group, sequence);
  const auto waiting = std::ranges::find(queue.waiting, sequence, &OrderedJob::sequence);
  if (waiting == queue.waiting.end()) return owe(group, error);
  const JobPtr job = std::move(*waiting);
  queue.waiting.erase(waiting);
  finish(job, error);
}

void OrderedDoor::apply_end(core::GroupId group, std::uint64_t sequence, const Error& error) {
  Queue& queue = queues_[group];
  if (!queue.end || sequence < queue.end->first) {
    queue.end = End{sequence, error};
  }
  for (const std::uint64_t pending : pending_from(queue, sequence)) apply(group, pending, error);
}

std::vector<std::uint64_t> OrderedDoor::pending_from(const Queue& queue, std::uint64_t sequence) {
  std::vector<std::uint64_t> pending;
  for (auto job = queue.in_flight.lower_bound(sequence); job != queue.in_flight.end(); ++job) {
    pending.push_back(job->first);
  }
  for (const JobPtr& job : queue.waiting) {
    if (job->sequence() >= sequence) pending.push_back(job->sequence());
  }
  return pending;
}

void OrderedDoor::owe(core::GroupId group, const Error& error) {
  const std::lock_guard lock(mutex_);
  std::optional<Error>& owed = counts_[group].owed;
  if (!owed) owed = error;
}

void OrderedDoor::doom(core::GroupId group, std::uint64_t sequence, const Error& error) {
  const std::lock_guard lock(mutex_);
  counts_[group].doomed.emplace(sequence, error);
}

std::optional<Error> OrderedDoor::take_doom(const OrderedJob& job) {
  const std::lock_guard lock(mutex_);
  const auto doomed = counts_[job.group().id].doomed.extract(job.sequence());
  if (doomed.empty()) return std::nullopt;
  return doomed.mapped();
}

void OrderedDoor::fail_and_report(const JobPtr& job, const Error& error) {
  apply(job->group().id, job->sequence(), error);
  hooks_.report({.group = job->group().id,
                 .sequence = job->sequence(),
                 .members = job->group().members,
                 .error = error});
}

// --- what is due after a while -----------------------------------------------------------

void OrderedDoor::watch(const JobPtr& job) {
  const std::chrono::milliseconds limit = job->operation().time_limit;
  const core::TimePoint now = core::Clock::now();
  if (limit.count() > 0 && !job->limit) job->limit = now + limit;
  await(job, now, routes_.inside_hosts(job->operation().kind, job->group().members));
}

void OrderedDoor::await(const JobPtr& job, core::TimePoint now, bool tells_mates) {
  std::optional<core::TimePoint> when = job->limit;
  if (tells_mates) when = std::min(when.value_or(core::TimePoint::max()), now + kTellMates);
  if (!when) return;
  job->deadline = deadlines_.add(*when, [this, job] { worker_.post([this, job] { due(job); }); });
}

void OrderedDoor::due(const JobPtr& job) {
  if (job->over) return;
  const core::TimePoint now = core::Clock::now();
  if (job->limit && now >= *job->limit) return expire(job, false);
  const bool runs = queues_[job->group().id].in_flight.contains(job->sequence());
  if (runs) {
    routes_.tell_mates(wire_group(job->group().id, Door::kOrdered), job->sequence(),
                       hooks_.need_flows);
  }
  await(job, now, !runs);
}

void OrderedDoor::expire(const JobPtr& job, bool again) {
  if (job->over) return;
  const std::uint32_t wire = wire_group(job->group().id, Door::kOrdered);
  const std::vector<int> awaited = routes_.awaited(wire, job->sequence());
  if (awaited.empty() && !again) {
    job->deadline = deadlines_.add(core::Clock::now() + kLetOthersName, [this, job] {
      worker_.post([this, job] { expire(job, true); });
    });
    return;
  }
  fail_and_report(job, lateness(*job, awaited));
}

Error OrderedDoor::lateness(const OrderedJob& job, const std::vector<int>& awaited) const {
  std::string text =
      fmt::format("{} of group {} did not end within {} ms on {}", job.title(), job.group().id,
                  job.operation().time_limit.count(), world_.describe(world_.rank));
  std::vector<std::string> names;
  names.reserve(awaited.size());
  for (const int rank : awaited) names.push_back(world_.describe(rank));
  if (!names.empty()) text += fmt::format("; not ready: {}", fmt::join(names, ", "));
  return {ErrorCode::kTimedOut, std::move(text), awaited.size() == 1 ? awaited.front() : -1};
}

// --- the end -----------------------------------------------------------------------------

Error OrderedDoor::removal_of(const Group& group) const {
  return {ErrorCode::kShutdown,
          fmt::format("{} has removed group {}", world_.describe(world_.rank), group.id),
          world_.rank};
}

void OrderedDoor::remove(const GroupPtr& group, bool tell) {
  worker_.post([this, group, tell] {
    const Error error = removal_of(*group);
    for (const std::uint64_t sequence : pending_from(queues_[group->id], 0)) {
      apply(group->id, sequence, error);
      hooks_.report({group->id, sequence, group->members, error});
    }
    if (tell) {
      const std::uint64_t next = queues_[group->id].last_seen + 1;
      hooks_.report({group->id, next, group->members, error, true});
    }
    board_.forget_group(wire_group(group->id, Door::kOrdered));
    queues_.erase(group->id);
    removed_.insert(group->id);
    const std::lock_guard lock(mutex_);
    counts_.erase(group->id);
  });
}

void OrderedDoor::close(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = error;
}

void OrderedDoor::fail(const Error& error) {
  worker_.post([this, error] {
    if (!failed_) failed_ = error;
    for (auto& [group, queue] : queues_) {
      for (const JobPtr& job : std::exchange(queue.waiting, {})) finish(job, *failed_);
    }
  });
}

}  // namespace fasthorovod::ops
