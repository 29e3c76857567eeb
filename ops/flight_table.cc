#include "ops/flight_table.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::ops {

bool FlightTable::begin(const Operation& operation) {
  const auto [entry, is_new] = groups_.try_emplace(operation.group);
  if (!is_new && operation.sequence <= entry->second.last_started) return false;
  entry->second.last_started = operation.sequence;
  return true;
}

ScheduleRunner& FlightTable::add(Operation operation) {
  auto runner = std::make_unique<ScheduleRunner>(++last_id_, std::move(operation));
  ScheduleRunner& added = *runner;
  groups_[added.operation().group].by_sequence.emplace(added.operation().sequence, &added);
  by_id_.emplace(added.id(), std::move(runner));
  return added;
}

ScheduleRunner* FlightTable::find(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.get();
}

ScheduleRunner* FlightTable::find(const transport::FrameHeader& header) const {
  const auto group = groups_.find(header.group);
  if (group == groups_.end()) return nullptr;
  const auto found = group->second.by_sequence.find(header.sequence);
  return found == group->second.by_sequence.end() ? nullptr : found->second;
}

bool FlightTable::is_ahead(const transport::FrameHeader& header) const {
  const auto group = groups_.find(header.group);
  return group == groups_.end() || header.sequence > group->second.last_started;
}

const ScheduleRunner* FlightTable::oldest() const {
  return by_id_.empty() ? nullptr : by_id_.begin()->second.get();
}

void FlightTable::note_past(const Operation& operation) {
  if (operation.door() != Door::kOrdered) return;
  Group& group = groups_[operation.group];
  group.past.push_back({operation.sequence, operation.fingerprint, operation.description});
  if (group.past.size() > kPast) group.past.pop_front();
}

const FlightTable::Past* FlightTable::past(const transport::FrameHeader& header) const {
  const auto group = groups_.find(header.group);
  if (group == groups_.end()) return nullptr;
  const auto found = std::ranges::find(group->second.past, header.sequence, &Past::sequence);
  return found == group->second.past.end() ? nullptr : &*found;
}

void FlightTable::mark_failed(std::uint32_t group, std::uint64_t sequence) {
  std::set<std::uint64_t>& failed = groups_[group].failed;
  failed.insert(sequence);
  if (failed.size() > kFailures) failed.erase(failed.begin());
}

bool FlightTable::has_failed(const transport::FrameHeader& header) const {
  const auto group = groups_.find(header.group);
  return group != groups_.end() && group->second.failed.contains(header.sequence);
}

void FlightTable::forget_group(std::uint32_t group) {
  groups_.erase(group);
  forgotten_.insert(group);
}

Operation FlightTable::remove(std::uint64_t id) {
  const auto found = by_id_.find(id);
  Operation operation = std::move(*found->second).release();
  by_id_.erase(found);
  if (is_forgotten(operation.group)) return operation;
  groups_[operation.group].by_sequence.erase(operation.sequence);
  note_past(operation);
  return operation;
}

}  // namespace fasthorovod::ops
