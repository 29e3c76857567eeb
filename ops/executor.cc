#include "ops/executor.h"

#include <new>
#include <utility>

#include "core/fingerprint.h"

namespace fasthorovod::ops {

using core::OpKind;

namespace {

bool moves_nothing(OpKind op) {
  return op == OpKind::kBarrier || op == OpKind::kJoin || core::changes_groups(op);
}

// What the handle of an operation that gives no tensor tells beside its status.
int answer(const core::PlanItem& item) {
  return core::changes_groups(item.op) ? static_cast<int>(item.group) : item.last_joined;
}

}  // namespace

Executor::Executor(const core::World& world, int flows, const core::AllreducePlan& allreduces,
                   ChunkBoard& board, Routes& routes, PendingTable& pending, Worker& worker,
                   Hooks hooks)
    : world_(world),
      flows_(flows),
      allreduces_(allreduces),
      board_(board),
      routes_(routes),
      pending_(pending),
      worker_(worker),
      hooks_(std::move(hooks)) {}

void Executor::execute(core::PlanItem item, std::vector<EntryPtr> entries, GroupPtr group) {
  handed_over_.fetch_add(1, std::memory_order_acq_rel);
  auto job = std::make_shared<CollectiveJob>(std::move(item), std::move(entries), std::move(group));
  worker_.post([this, job = std::move(job)] {
    queues_[job->item().group].waiting.push_back(job);
    start_what_fits(job->item().group);
  });
}

void Executor::fail(core::Error error) {
  worker_.post([this, error = std::move(error)] {
    if (!failed_) failed_ = error;
    std::vector<core::GroupId> groups;
    groups.reserve(queues_.size());
    for (const auto& [group, queue] : queues_) groups.push_back(group);
    for (const core::GroupId group : groups) start_what_fits(group);
  });
}

void Executor::retry() {
  worker_.post([this] { start_what_fits(); });
}

void Executor::start_what_fits() {
  std::vector<core::GroupId> groups;
  groups.reserve(queues_.size());
  for (const auto& [group, queue] : queues_) groups.push_back(group);
  for (const core::GroupId group : groups) start_what_fits(group);
}

void Executor::start_what_fits(core::GroupId group) {
  const auto found = queues_.find(group);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  while (!queue.waiting.empty() && may_start(queue)) {
    const JobPtr job = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    const std::uint64_t number = queue.started++;
    queue.in_flight.emplace(number, job.get());
    if (start(job, queue.in_flight.size() == 1)) continue;
    queue.in_flight.erase(number);
    --queue.started;
    queue.waiting.push_front(job);
    break;
  }
  if (queue.waiting.empty() && queue.in_flight.empty()) queues_.erase(found);
}

bool Executor::may_start(const Queue& queue) const {
  const core::PlanItem& item = queue.waiting.front()->item();
  if (failed_ || item.error) return true;  // it only fails
  const bool waits_for_all = item.op == OpKind::kBarrier || item.op == OpKind::kRemoveGroup;
  if (waits_for_all || queue.in_flight.empty()) return queue.in_flight.empty();
  return queue.started - queue.in_flight.begin()->first < kWindow;
}

// False: there is no shared memory for it now.
bool Executor::start(const JobPtr& job, bool alone) {
  const core::PlanItem& item = job->item();
  if (item.error || failed_ || moves_nothing(item.op)) {
    const bool forgets = !item.error && !failed_ && item.op == OpKind::kRemoveGroup;
    if (forgets && job->group().position >= 0) {
      board_.forget_group(named_wire_group(item.group));
      residuals_.forget(item.group);
    }
    finish(job, item.error ? *item.error : failed_ ? core::Status(*failed_) : core::Status());
    return true;
  }
  Plan plan;
  core::Status ready;
  try {
    ready = prepare(*job, plan);
  } catch (const std::bad_alloc&) {
    ready = core::Error{core::ErrorCode::kUnavailable,
                        job->title() + ": no memory for the fused buffer"};
  }
  if (ready) return transfer(job, plan, alone);
  // The others run this item and count on us: without a buffer there is no way to take part, so all
  // must hear of it.
  core::Error error = std::move(ready).error();
  error.culprit = world_.rank;
  hooks_.failed(error);
  finish(job, error);
  return true;
}

core::Status Executor::prepare(CollectiveJob& job, Plan& plan) {
  const bool inside_hosts = routes_.inside_hosts(OrderedKind::kAllreduce, job.group().members);
  core::Status ready = job.prepare(pool_, residuals_, inside_hosts);
  if (!ready || job.coded() != nullptr) return ready;
  plan.shape = job.shape(flows_);
  plan.algorithm = &choose(job.item().op, plan.shape, allreduces_);
  if (job.item().op == OpKind::kAllreduce) {
    plan.shape.chunk_bytes = chunk_bytes(*plan.algorithm, plan.shape, flows_);
  }
  if (!inside_hosts) job.find_scratch(pool_, scratch_bytes(*plan.algorithm, plan.shape));
  return ready;
}

Operation Executor::operation_of(const JobPtr& job) {
  const core::PlanItem& item = job->item();
  Operation operation;
  operation.epoch = world_.epoch;
  operation.group = named_wire_group(item.group);
  operation.sequence = item.sequence;
  operation.fingerprint = core::fingerprint(item);
  operation.title = job->title();
  operation.description = job->title();
  operation.members = job->group().members;
  operation.buffer = job->buffer();
  operation.scratch = job->scratch();
  operation.type = item.type;
  operation.reduction = item.reduction;
  operation.done = [this, job](core::Status status) {
    worker_.post([this, job, status = std::move(status)] {
      finish(job, status);
      start_what_fits(job->item().group);
    });
  };
  return operation;
}

bool Executor::transfer(const JobPtr& job, const Plan& plan, bool alone) {
  if (job->coded() != nullptr) {
    exchange_coded(job);
    return true;
  }
  const Routes::Start how{*plan.algorithm, plan.shape, job->input(), alone};
  const bool started = routes_.start(operation_of(job), how, [this](int rank) { meet(rank); });
  if (started) count(*job);
  return started;
}

// The codes of a segment leave while the next one is encoded.
void Executor::exchange_coded(const JobPtr& job) {
  Operation operation = operation_of(job);
  operation.type = core::DataType::kUint8;
  operation.schedule = job->coded()->schedule(flows_);
  operation.piece_done = [this, job](std::uint32_t piece) {
    worker_.post([this, job, piece] { piece_over(job, piece); });
  };
  for_each_peer(operation, [this](int rank) { meet(rank); });
  const std::uint32_t group = operation.group;
  const std::uint64_t sequence = operation.sequence;
  board_.start(std::move(operation));
  count(*job);
  job->coded()->encode([&](std::uint32_t opened) { board_.open_gates(group, sequence, opened); });
}

void Executor::piece_over(const JobPtr& job, std::uint32_t piece) {
  const core::PlanItem& item = job->item();
  const std::uint32_t opened = job->coded()->piece_over(piece);
  board_.open_gates(named_wire_group(item.group), item.sequence, opened);
}

void Executor::meet(int rank) {
  if (peers_.insert(rank).second) hooks_.need_flows(rank);
}

void Executor::finish(const JobPtr& job, const core::Status& status) {
  if (status) job->finish();
  job->release(pool_);
  std::erase_if(queues_.at(job->item().group).in_flight,
                [&job](const auto& entry) { return entry.second == job.get(); });
  handed_over_.fetch_sub(1, std::memory_order_acq_rel);
  for (const EntryPtr& entry : job->entries()) {
    if (entry == nullptr) continue;
    if (status && entry->submission.then) entry->submission.then();
    pending_.complete(entry, status, answer(job->item()));
  }
  if (idle()) hooks_.idle();
}

void Executor::count(const CollectiveJob& job) {
  items_.fetch_add(1, std::memory_order_relaxed);
  tensors_.fetch_add(job.entries().size(), std::memory_order_relaxed);
  payload_bytes_.fetch_add(job.payload_bytes(), std::memory_order_relaxed);
}

}  // namespace fasthorovod::ops
