#include "ops/negotiator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/progress_watch.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using core::OpKind;

namespace {

// A rank that has stopped leaves others in the middle of an operation; they do not submit the next
// one either, and would be blamed for that. So the coordinator gives the roll call, which finds the
// one that stopped, time to come first.
constexpr std::chrono::milliseconds kRollCallFirst{2000};

core::Duration after_roll_call(core::Duration limit) {
  const ProgressWatch watch(limit);
  return watch.enabled() ? limit + watch.interval() + kRollCallFirst : limit;
}

core::CoordinatorOptions coordinator_options(const core::World& world, const core::Config& config) {
  return {.size = world.size,
          .fusion_threshold = config.fusion_threshold,
          .cache_capacity = config.cache_capacity,
          .stall_warning = config.stall_warning,
          .stall_limit = after_roll_call(config.stall_limit)};
}

// More than the bytes of a request in a control message.
std::size_t most_bytes(const core::Request& request) {
  constexpr std::size_t kFixed = 128;
  constexpr std::size_t kDimension = 10;
  return kFixed + request.name.size() + request.bundle.size() + kDimension * request.shape.size();
}

}  // namespace

Negotiator::Negotiator(const core::World& world, const core::Config& config, PendingTable& pending,
                       ProcessSets& sets, Executor& executor, core::Log& log, Hooks hooks)
    : world_(world),
      pending_(pending),
      sets_(sets),
      executor_(executor),
      log_(log),
      hooks_(std::move(hooks)) {
  if (world.rank != 0) return;
  coordinator_.emplace(coordinator_options(world, config));
  last_plans_.resize(static_cast<std::size_t>(world.size));
}

void Negotiator::announce() {
  core::Submissions submissions = nothing_yet();
  std::size_t bytes = 0;
  for (const EntryPtr& entry : pending_.take_fresh()) {
    bytes += most_bytes(entry->submission.request);
    if (bytes > core::kMaxControlBytes) {
      tell_coordinator(std::exchange(submissions, nothing_yet()));
      bytes = most_bytes(entry->submission.request);
    }
    classify(entry, submissions);
  }
  tell_coordinator(submissions);
}

core::Submissions Negotiator::nothing_yet() const {
  core::Submissions submissions;
  submissions.plans_applied = plans_applied_;
  return submissions;
}

// A request seen before costs one bit.
void Negotiator::classify(const EntryPtr& entry, core::Submissions& submissions) {
  const core::Request& request = entry->submission.request;
  if (request.op == OpKind::kJoin) {
    joining_ = entry;
    submissions.joined = true;
  } else if (const auto position = cache_.find(request)) {
    core::set_bit(submissions.cached, *position);
    cache_hits_.fetch_add(1, std::memory_order_relaxed);
  } else {
    submissions.requests.push_back(request);
  }
}

void Negotiator::tell_coordinator(const core::Submissions& submissions) {
  if (coordinates()) {
    submitted(world_.rank, submissions);
  } else {
    hooks_.send(0, submissions);
  }
}

void Negotiator::submitted(int rank, const core::Submissions& submissions) {
  if (!coordinates()) {
    return hooks_.fault(
        {ErrorCode::kProtocol,
         fmt::format("{} sent requests to a rank that does not coordinate", world_.describe(rank)),
         rank});
  }
  if (core::Status status = coordinator_->submit(rank, submissions, core::Clock::now()); !status) {
    Error error = std::move(status).error().with_context(world_.describe(rank));
    error.culprit = rank;
    return hooks_.fault(std::move(error));
  }
  pump();
}

void Negotiator::left(int rank) {
  coordinator_->leave(rank, core::Clock::now());
  pump();
}

void Negotiator::pump() {
  if (!coordinates()) return;
  while (std::optional<core::Plan> plan =
             coordinator_->take_plan(core::Clock::now(), executor_.idle())) {
    note_who_takes_part(*plan);
    const core::ControlMessage message = *plan;
    for (int rank = 1; rank < world_.size; ++rank) hooks_.send(rank, message);
    apply(std::move(*plan));
  }
  for (const std::string& warning : coordinator_->take_warnings(core::Clock::now()))
    log_.warning(warning);
  if (const auto deadline = coordinator_->next_deadline()) wake_at(*deadline);
}

// One timer at a time: a later deadline waits for the earlier timer, which sets the next one.
void Negotiator::wake_at(core::TimePoint when) {
  if (wake_ && *wake_ <= when) return;
  wake_ = when;
  hooks_.call_after(when - core::Clock::now(), [this, when] {
    if (wake_ != when) return;  // an earlier timer took over
    wake_.reset();
    pump();
  });
}

void Negotiator::apply(core::Plan plan) {
  if (plan.number != plans_applied_ + 1) {
    return hooks_.fault({ErrorCode::kProtocol,
                         fmt::format("plan {} came after plan {}", plan.number, plans_applied_),
                         0});
  }
  plans_applied_ = plan.number;
  if (core::Status applied = cache_.apply(plan, world_.rank); !applied) {
    return hooks_.fault(std::move(applied).error());
  }
  for (core::PlanItem& item : plan.items) hand_over(std::move(item));
}

void Negotiator::hand_over(core::PlanItem item) {
  if (item.op == OpKind::kJoin) return hand_over_join(std::move(item));
  if (core::changes_groups(item.op)) return change_groups(std::move(item));
  GroupPtr set = sets_.find(item.group);
  if (!item.error && set == nullptr) {
    return hooks_.fault({ErrorCode::kProtocol,
                         fmt::format("a plan is for process set {}, which {} does not know",
                                     item.group, world_.describe(world_.rank)),
                         0});
  }
  if (!item.error && set->position < 0) return;  // for other ranks
  std::vector<EntryPtr> entries = take_entries(item, item.group);
  const auto missing = std::ranges::find(entries, nullptr);
  if (!item.error && joining_ == nullptr && missing != entries.end()) {
    const auto at = static_cast<std::size_t>(missing - entries.begin());
    return hooks_.fault({ErrorCode::kInternal,
                         fmt::format("'{}' was planned, but {} did not submit it",
                                     item.tensors[at].name, world_.describe(world_.rank)),
                         world_.rank});
  }
  executor_.execute(std::move(item), std::move(entries), std::move(set));
}

void Negotiator::hand_over_join(core::PlanItem item) {
  std::vector<EntryPtr> entries{std::exchange(joining_, nullptr)};
  if (entries.front() != nullptr) entries.front()->planned = true;
  executor_.execute(std::move(item), std::move(entries), sets_.find(core::kWorldGroup));
}

// From here on submissions find the new set, or no longer find the old one.
void Negotiator::change_groups(core::PlanItem item) {
  if (!item.error && item.op == OpKind::kAddGroup) sets_.add(item.group, item.members);
  GroupPtr set = sets_.find(item.group);
  if (!item.error && item.op == OpKind::kRemoveGroup) sets_.remove(item.group);
  std::vector<EntryPtr> entries = take_entries(item, core::kWorldGroup);
  executor_.execute(std::move(item), std::move(entries), std::move(set));
}

// This rank's part of an item, one place a tensor; null for what it did not submit.
std::vector<EntryPtr> Negotiator::take_entries(const core::PlanItem& item, core::GroupId group) {
  std::vector<EntryPtr> entries;
  entries.reserve(item.tensors.size());
  for (const core::PlanTensor& tensor : item.tensors) {
    EntryPtr entry = pending_.find(group, tensor.name);
    // One that is planned belongs to an earlier operation of this name, which still runs here while
    // this one fails without us: its memory is in use.
    if (entry != nullptr && entry->planned) entry = nullptr;
    if (entry != nullptr) entry->planned = true;
    entries.push_back(std::move(entry));
  }
  return entries;
}

void Negotiator::note_who_takes_part(const core::Plan& plan) {
  for (const core::PlanItem& item : plan.items) {
    const bool is_for_all = item.op == OpKind::kJoin || core::changes_groups(item.op);
    const GroupPtr set = sets_.find(is_for_all ? core::kWorldGroup : item.group);
    if (set == nullptr) continue;  // of a set that was removed: it only fails
    for (const int rank : set->members) last_plans_[static_cast<std::size_t>(rank)] = plan.number;
  }
}

}  // namespace fasthorovod::ops
