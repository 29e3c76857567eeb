#include "core/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "core/agreement.h"
#include "core/bundle_table.h"
#include "core/cache_ledger.h"
#include "core/group_registry.h"
#include "core/membership.h"
#include "core/plan_builder.h"
#include "core/ready_list.h"
#include "core/stall_monitor.h"
#include "core/tensor_table.h"

namespace fasthorovod::core {

namespace {

using State = KnownTensor::State;

Error protocol_error(int rank, std::string_view what) {
  return {ErrorCode::kProtocol, fmt::format("rank {} {}", rank, what), rank};
}

Error duplicate(int rank, std::string_view name) {
  return {ErrorCode::kDuplicateName,
          fmt::format("tensor \"{}\": rank {} submitted it twice before it ran", name, rank), rank};
}

// What comes after the end of a group is nobody's fault.
bool may_submit(int rank, const KnownGroup& group) { return group.removed || group.includes(rank); }

Error removed(const KnownGroup& group) {
  return {ErrorCode::kShutdown, fmt::format("process set {} was removed", group.id)};
}

// What no healthy rank sends, as its engine refuses it before.
Status check_request(int rank, const Request& request) {
  if (request.name.empty()) return protocol_error(rank, "submitted a tensor without a name");
  const bool is_bundled = !request.bundle.empty();
  const bool is_change = changes_groups(request.op);
  const bool fits_its_kind =
      is_change ? request.group == kWorldGroup && !is_bundled && is_ascending(request.members)
                : request.members.empty();
  if (request.op == OpKind::kJoin || !is_valid_shape(request.shape) ||
      is_bundled != (request.bundle_size > 0) || !fits_its_kind) {
    return protocol_error(rank, fmt::format("submitted \"{}\", which cannot be", request.name));
  }
  return {};
}

}  // namespace

class Coordinator::Impl final {
 public:
  explicit Impl(CoordinatorOptions options)
      : options_(options),
        membership_(options.size),
        groups_(membership_),
        table_(options.size),
        ledger_(options.size, options.cache_capacity),
        builder_(ledger_, options.fusion_threshold),
        monitor_(options.stall_warning, options.stall_limit),
        ready_(options.fusion_threshold, options.fusion_wait) {}

  Status submit(int rank, const Submissions& submissions, TimePoint now);
  void leave(int rank, TimePoint now);
  std::optional<Plan> take_plan(TimePoint now, bool idle);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  std::vector<std::string> take_warnings(TimePoint now);

 private:
  Status submit_cached(int rank, const std::vector<std::uint64_t>& bits, TimePoint now);
  Status submit_position(int rank, std::uint32_t position, TimePoint now);
  Result<KnownTensor*> tensor_of(int rank, const Request& request);
  template <typename Record>
  Status add(int rank, KnownTensor& tensor, const Request& request, TimePoint now, Record record);
  Status join(int rank, TimePoint now);
  void finish_join(TimePoint now);

  void complete(KnownTensor& tensor, TimePoint now);
  void fail(KnownTensor& tensor, Error error, bool bundle_at_once, TimePoint now);
  void change_groups(KnownTensor& tensor, TimePoint now);
  void fail_group(const KnownGroup& group, const Error& error, TimePoint now);
  void fail_broken_groups(TimePoint now);
  void make_ready(ReadyUnit unit, TimePoint now);
  void make_ready(std::vector<ReadyUnit> units, TimePoint now);

  void check_stalls(TimePoint now);
  void expire(KnownTensor& tensor, const std::vector<int>& missing, TimePoint now);
  std::vector<int> missing_ranks(const KnownTensor& tensor) const;
  void forget(const std::vector<ReadyUnit>& planned, const std::vector<KnownTensor*>& evicted);

  CoordinatorOptions options_;
  Membership membership_;
  GroupRegistry groups_;
  TensorTable table_;
  BundleTable bundles_;
  CacheLedger ledger_;
  PlanBuilder builder_;
  StallMonitor monitor_;
  ReadyList ready_;
  std::map<GroupId, std::size_t> pending_;  // tensors in flight that are not in the ready list
  std::uint64_t arrivals_ = 0;
  std::vector<std::string> warnings_;
};

Status Coordinator::Impl::submit(int rank, const Submissions& submissions, TimePoint now) {
  if (rank < 0 || rank >= membership_.size()) return protocol_error(rank, "is none of this world");
  if (membership_.has_left(rank)) return protocol_error(rank, "submitted something after it left");
  if (auto status = submit_cached(rank, submissions.cached, now); !status) return status;
  for (const Request& request : submissions.requests) {
    if (auto status = check_request(rank, request); !status) return status;
    const auto found = tensor_of(rank, request);
    if (!found) return found.error();
    KnownTensor& tensor = **found;
    auto status = add(rank, tensor, request, now, [&] { tensor.submit(rank, request); });
    if (!status) return status;
  }
  if (submissions.joined) {
    if (auto status = join(rank, now); !status) return status;
  }
  if (membership_.first_left()) fail_broken_groups(now);
  // Last: the bits may have been chosen before the rank applied the plan it now acknowledges.
  return ledger_.acknowledge(rank, submissions.plans_applied, builder_.last_number(), membership_);
}

Status Coordinator::Impl::submit_cached(int rank, const std::vector<std::uint64_t>& bits,
                                        TimePoint now) {
  std::uint32_t base = 0;
  for (std::uint64_t word : bits) {
    for (; word != 0; word &= word - 1) {
      const std::uint32_t position = base + static_cast<std::uint32_t>(std::countr_zero(word));
      if (auto status = submit_position(rank, position, now); !status) return status;
    }
    base += 64;
  }
  return {};
}

Status Coordinator::Impl::submit_position(int rank, std::uint32_t position, TimePoint now) {
  const CacheLedger::Slot* slot = ledger_.at(position);
  if (slot == nullptr) {
    return protocol_error(rank, fmt::format("sent bit {}, which nobody has", position));
  }
  // A freed position no longer knows its tensor, which may be forgotten or cached elsewhere.
  Result<KnownTensor*> found = slot->tensor;
  if (slot->tensor == nullptr || !may_submit(rank, slot->tensor->group())) {
    found = tensor_of(rank, *slot->request);
  }
  if (!found) return found.error();
  KnownTensor& tensor = **found;
  const auto& rows = slot->first_dimensions;
  const std::int64_t own_rows = rows.empty() ? 0 : rows[static_cast<std::size_t>(rank)];
  return add(rank, tensor, *slot->request, now,
             [&] { tensor.submit_cached(rank, slot->request, own_rows); });
}

// The tensor that a request is for, in a group that the rank is, or was, in.
Result<KnownTensor*> Coordinator::Impl::tensor_of(int rank, const Request& request) {
  const KnownGroup* group = groups_.find(request.group);
  if (group == nullptr || !may_submit(rank, *group)) {
    return protocol_error(
        rank, fmt::format("submitted \"{}\" in process set {}, which it is not in", request.name,
                          request.group));
  }
  return &table_.find_or_add(*group, request.name);
}

// Counts one rank's request; `record` puts it into the tensor.
template <typename Record>
Status Coordinator::Impl::add(int rank, KnownTensor& tensor, const Request& request, TimePoint now,
                              Record record) {
  if (tensor.has_submitted(rank)) return duplicate(rank, tensor.label());
  const bool too_late = tensor.group().removed;
  bool may_settle = false;
  if (!request.bundle.empty() && !too_late) {
    const auto added = bundles_.add(rank, request, tensor, membership_);
    if (!added) return added.error();
    may_settle = *added;
  }
  if (tensor.state == State::kIdle) {
    tensor.state = State::kWaiting;
    tensor.arrival = ++arrivals_;
    tensor.stall = monitor_.begin(now);
    ++pending_[tensor.group().id];
  }
  record();
  if (membership_.is_active(rank)) ++tensor.active_submitted;
  if (too_late) {
    if (tensor.state == State::kWaiting) make_ready({{&tensor}, removed(tensor.group())}, now);
    return {};
  }
  const bool is_last = tensor.active_submitted == tensor.group().active;
  if (tensor.state == State::kWaiting && is_last) complete(tensor, now);
  if (may_settle) make_ready(bundles_.settle(tensor, membership_), now);
  return {};
}

// Every active rank of its group submitted the tensor.
void Coordinator::Impl::complete(KnownTensor& tensor, TimePoint now) {
  if (auto error = verdict(tensor, membership_)) {
    fail(tensor, *std::move(error), false, now);
  } else if (changes_groups(tensor.lowest_request()->op)) {
    change_groups(tensor, now);
  } else if (tensor.lowest_request()->bundle.empty()) {
    make_ready(ReadyUnit{{&tensor}, std::nullopt}, now);
  } else {
    tensor.state = State::kComplete;
  }
}

void Coordinator::Impl::change_groups(KnownTensor& tensor, TimePoint now) {
  const Request& change = *tensor.lowest_request();
  if (auto reason = groups_.refusal(change)) {
    return make_ready(ReadyUnit{{&tensor}, Error{ErrorCode::kInvalidArgument, *std::move(reason)}},
                      now);
  }
  const KnownGroup& group = groups_.apply(change);
  if (group.removed) fail_group(group, removed(group), now);
  make_ready(ReadyUnit{{&tensor}, std::nullopt, -1, group.id}, now);
}

void Coordinator::Impl::fail(KnownTensor& tensor, Error error, bool bundle_at_once, TimePoint now) {
  auto others = bundles_.break_bundles_of(tensor, error, membership_, bundle_at_once);
  make_ready(ReadyUnit{{&tensor}, std::move(error)}, now);
  make_ready(std::move(others), now);
}

void Coordinator::Impl::make_ready(ReadyUnit unit, TimePoint now) {
  for (KnownTensor* tensor : unit.tensors) {
    tensor->state = State::kReady;
    const auto pending = pending_.find(tensor->group().id);
    if (--pending->second == 0) pending_.erase(pending);
  }
  ready_.push(std::move(unit), now);
}

void Coordinator::Impl::make_ready(std::vector<ReadyUnit> units, TimePoint now) {
  for (ReadyUnit& unit : units) make_ready(std::move(unit), now);
}

Status Coordinator::Impl::join(int rank, TimePoint now) {
  if (membership_.has_joined(rank)) return duplicate(rank, to_string(OpKind::kJoin));
  membership_.join(rank);
  groups_.recount();
  const auto pending = table_.pending();
  for (KnownTensor* tensor : pending) {
    if (tensor->has_submitted(rank)) --tensor->active_submitted;
  }
  // Nobody waits for this rank any more: what waited for it alone is complete now.
  for (KnownTensor* tensor : pending) {
    const bool is_waiting = tensor->state == State::kWaiting;
    if (is_waiting && tensor->active_submitted == tensor->group().active) complete(*tensor, now);
  }
  make_ready(bundles_.settle_all(membership_), now);
  if (membership_.active_count() == 0) finish_join(now);
  return {};
}

// The last rank joined: everything that was submitted before has become ready above.
void Coordinator::Impl::finish_join(TimePoint now) {
  make_ready(ReadyUnit{{}, std::nullopt, membership_.last_joined().value_or(-1)}, now);
  membership_.reset_joined();
  groups_.recount();
}

void Coordinator::Impl::leave(int rank, TimePoint now) {
  if (rank < 0 || rank >= membership_.size() || membership_.has_left(rank)) return;
  membership_.leave(rank);
  groups_.leave(rank);
  fail_broken_groups(now);
}

// Nothing pending in a group runs any more.
void Coordinator::Impl::fail_group(const KnownGroup& group, const Error& error, TimePoint now) {
  std::vector<KnownTensor*> pending = table_.pending();
  std::erase_if(pending, [&](const KnownTensor* tensor) { return &tensor->group() != &group; });
  bundles_.clear(group);
  if (!pending.empty()) make_ready(ReadyUnit{std::move(pending), error}, now);
}

// A rank left for good, and every operation needs all ranks of its group.
void Coordinator::Impl::fail_broken_groups(TimePoint now) {
  for (const KnownGroup* group : groups_.broken()) {
    const int culprit = *group->first_left;
    const Error error{ErrorCode::kShutdown, fmt::format("rank {} shut down", culprit), culprit};
    ready_.fail_all(*group, error);
    fail_group(*group, error, now);
    if (group->id != kWorldGroup || !membership_.any_joined()) continue;
    make_ready(ReadyUnit{{}, error}, now);
    membership_.reset_joined();
    groups_.recount();
  }
}

std::optional<Plan> Coordinator::Impl::take_plan(TimePoint now, bool idle) {
  check_stalls(now);
  const bool may_get_more =
      std::ranges::any_of(ready_.groups(), [this](GroupId id) { return pending_.contains(id); });
  if (!ready_.is_due(now, idle && !may_get_more)) return std::nullopt;
  const std::vector<ReadyUnit> planned = ready_.take();
  PlanBuilder::Built built = builder_.build(planned);
  forget(planned, built.evicted);
  return std::move(built.plan);
}

void Coordinator::Impl::forget(const std::vector<ReadyUnit>& planned,
                               const std::vector<KnownTensor*>& evicted) {
  // First those nobody uses: the others may be among the planned ones, which come last.
  for (const KnownTensor* tensor : evicted) table_.forget_if_unused(*tensor);
  for (const ReadyUnit& unit : planned) {
    for (KnownTensor* tensor : unit.tensors) {
      tensor->reset();
      table_.forget_if_unused(*tensor);
    }
  }
}

std::optional<TimePoint> Coordinator::Impl::next_deadline() const {
  const std::optional<TimePoint> ready = ready_.deadline();
  const std::optional<TimePoint> stall = !pending_.empty() ? monitor_.next_check() : std::nullopt;
  if (!ready) return stall;
  return stall ? std::min(*ready, *stall) : *ready;
}

std::vector<int> Coordinator::Impl::missing_ranks(const KnownTensor& tensor) const {
  if (tensor.state == State::kComplete) return bundles_.missing_of(tensor, membership_);
  std::vector<int> missing;
  for (const int rank : tensor.group().ranks) {
    if (membership_.is_active(rank) && !tensor.has_submitted(rank)) missing.push_back(rank);
  }
  return missing;
}

void Coordinator::Impl::check_stalls(TimePoint now) {
  if (!monitor_.next_check() || now < *monitor_.next_check()) return;
  const std::vector<KnownTensor*> pending = table_.pending();
  std::vector<Waiting> waiting;
  waiting.reserve(pending.size());
  for (KnownTensor* tensor : pending) {
    waiting.push_back({tensor->label(), &tensor->stall, missing_ranks(*tensor)});
  }
  StallMonitor::Report report = monitor_.check(waiting, now);
  std::move(report.warnings.begin(), report.warnings.end(), std::back_inserter(warnings_));
  for (const std::size_t i : report.expired) expire(*pending[i], waiting[i].missing, now);
}

void Coordinator::Impl::expire(KnownTensor& tensor, const std::vector<int>& missing,
                               TimePoint now) {
  if (tensor.state == State::kReady) return;  // failed with its bundle just now
  Error error{ErrorCode::kStalled,
              fmt::format("tensor \"{}\": {} did not submit it within {}", tensor.label(),
                          describe_ranks(missing), describe_seconds(options_.stall_limit)),
              missing.empty() ? -1 : missing.front()};
  fail(tensor, std::move(error), true, now);
}

std::vector<std::string> Coordinator::Impl::take_warnings(TimePoint now) {
  check_stalls(now);
  return std::exchange(warnings_, {});
}

Coordinator::Coordinator(CoordinatorOptions options) : impl_(std::make_unique<Impl>(options)) {}
Coordinator::~Coordinator() = default;

Status Coordinator::submit(int rank, const Submissions& submissions, TimePoint now) {
  return impl_->submit(rank, submissions, now);
}

void Coordinator::leave(int rank, TimePoint now) { impl_->leave(rank, now); }

std::optional<Plan> Coordinator::take_plan(TimePoint now, bool idle) {
  return impl_->take_plan(now, idle);
}

std::optional<TimePoint> Coordinator::next_deadline() const { return impl_->next_deadline(); }

std::vector<std::string> Coordinator::take_warnings(TimePoint now) {
  return impl_->take_warnings(now);
}

}  // namespace fasthorovod::core
