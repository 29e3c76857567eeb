#include "ops/pending_table.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "ops/outcome.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;

namespace {

std::string title_of(const core::Request& request) {
  return fmt::format("{} of '{}'", core::to_string(request.op), request.name);
}

}  // namespace

PendingTable::PendingTable(std::function<void()> on_fresh) : on_fresh_(std::move(on_fresh)) {}

std::string PendingTable::key(core::GroupId group, const std::string& name) {
  return fmt::format("{}:{}", group, name);
}

core::Result<std::vector<Handle>> PendingTable::add(std::vector<Submission> submissions) {
  std::vector<std::string> keys;
  std::vector<Handle> handles;
  for (const Submission& submission : submissions) {
    keys.push_back(key(submission.request.group, submission.request.name));
    handles.push_back(Handle::pending());
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (std::optional<Error> refused = refusal(submissions, keys)) return *std::move(refused);
    first = fresh_.empty();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      joining_ = joining_ || submissions[i].request.op == core::OpKind::kJoin;
      auto entry = std::make_shared<Entry>(Entry{std::move(submissions[i]), handles[i], false});
      entries_.emplace(std::move(keys[i]), entry);
      fresh_.push_back(std::move(entry));
    }
  }
  if (first && !handles.empty()) on_fresh_();
  return handles;
}

std::optional<Error> PendingTable::refusal(const std::vector<Submission>& submissions,
                                           const std::vector<std::string>& keys) const {
  if (closed_ && !submissions.empty()) {
    return Error(*closed_).with_context(title_of(submissions.front().request));
  }
  if (joining_) {
    return Error{ErrorCode::kInvalidArgument,
                 "this rank has joined; it can submit nothing more until all ranks have joined"};
  }
  std::unordered_set<std::string_view> own;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!entries_.contains(keys[i]) && own.insert(keys[i]).second) continue;
    return Error{
        ErrorCode::kDuplicateName,
        fmt::format(
            "a tensor named '{}' is still in flight on this rank; wait for it, or give this one "
            "another name",
            submissions[i].request.name)};
  }
  return std::nullopt;
}

std::vector<EntryPtr> PendingTable::take_fresh() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fresh_, {});
}

EntryPtr PendingTable::find(core::GroupId group, const std::string& name) const {
  const std::string wanted = key(group, name);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(wanted);
  return found == entries_.end() ? nullptr : found->second;
}

void PendingTable::complete(const EntryPtr& entry, const core::Status& status, int answer) {
  const core::Request& request = entry->submission.request;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key(request.group, request.name));
    if (found == entries_.end() || found->second != entry)
      return;  // completed before, e.g. by a fault
    entries_.erase(found);
    if (request.op == core::OpKind::kJoin) joining_ = false;
  }
  // Outside the lock: letting go of the tensor may run its owner's code.
  entry->submission.allocate_output = nullptr;
  entry->submission.then = nullptr;
  entry->submission.keep_alive.reset();
  const bool is_named =
      status || status.error().message.find('"' + request.name + '"') != std::string::npos;
  if (is_named) return entry->handle.complete(status, answer);
  entry->handle.complete(outcome_of(title_of(request), status));
}

void PendingTable::close(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = error;
}

bool PendingTable::empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

std::vector<EntryPtr> PendingTable::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<EntryPtr> entries;
  entries.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) entries.push_back(entry);
  return entries;
}

}  // namespace fasthorovod::ops
