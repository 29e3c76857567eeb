#include "core/ready_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fasthorovod::core {

namespace {

// A plan stays well below the largest control message (16 MiB), whatever the names are like.
constexpr std::size_t kPlanBytes = 4u << 20;

// Generous: a position where the tensor is cached, else name, numbers and what surrounds them.
std::size_t bytes_in_plan(const KnownTensor& tensor) {
  constexpr std::size_t kFixedBytes = 64;
  constexpr std::size_t kNumberBytes = 10;
  if (tensor.cache_position) return kFixedBytes;
  const Request& request = *tensor.lowest_request();
  const std::size_t numbers =
      request.shape.size() + request.members.size() + tensor.first_dimensions().size();
  return kFixedBytes + request.name.size() + request.bundle.size() + kNumberBytes * numbers;
}

std::size_t bytes_in_plan(const ReadyUnit& unit) {
  std::size_t bytes = unit.error ? unit.error->message.size() : 0;
  for (const KnownTensor* tensor : unit.tensors) bytes += bytes_in_plan(*tensor);
  return bytes;
}

GroupId group_of(const ReadyUnit& unit) {
  return unit.is_join() ? kWorldGroup : unit.tensors.front()->group().id;
}

bool can_fuse(const ReadyUnit& unit) {
  if (unit.error || unit.tensors.empty()) return false;
  return std::all_of(unit.tensors.begin(), unit.tensors.end(), [](const KnownTensor* tensor) {
    return tensor->lowest_request()->op == OpKind::kAllreduce;
  });
}

}  // namespace

void ReadyList::push(ReadyUnit unit, TimePoint now) {
  if (units_.empty()) first_ = now;
  if (can_fuse(unit)) {
    for (const KnownTensor* tensor : unit.tensors) bytes_ += byte_count(*tensor->lowest_request());
  } else {
    urgent_ = true;
  }
  groups_.insert(group_of(unit));
  units_.push_back(std::move(unit));
}

void ReadyList::fail_all(const KnownGroup& group, const Error& error) {
  for (ReadyUnit& unit : units_) {
    if (unit.error || unit.changes_group() || group_of(unit) != group.id) continue;
    unit.error = error;
    urgent_ = true;
  }
}

bool ReadyList::is_due(TimePoint now, bool nothing_to_gain) const {
  if (units_.empty()) return false;
  return is_urgent() || nothing_to_gain || now >= first_ + wait_;
}

std::optional<TimePoint> ReadyList::deadline() const {
  if (units_.empty()) return std::nullopt;
  return is_urgent() ? first_ : first_ + wait_;
}

std::vector<ReadyUnit> ReadyList::take() {
  std::size_t bytes = 0;
  auto end = units_.begin();
  while (end != units_.end() && (end == units_.begin() || bytes < kPlanBytes)) {
    bytes += bytes_in_plan(*end);
    ++end;
  }
  std::vector<ReadyUnit> taken(std::make_move_iterator(units_.begin()),
                               std::make_move_iterator(end));
  units_.erase(units_.begin(), end);
  bytes_ = 0;
  urgent_ = !units_.empty();
  groups_.clear();
  for (const ReadyUnit& unit : units_) groups_.insert(group_of(unit));
  return taken;
}

}  // namespace fasthorovod::core
