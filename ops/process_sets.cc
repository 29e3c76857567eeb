#include "ops/process_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <utility>

namespace fasthorovod::ops {

ProcessSets::ProcessSets(const core::World& world) : world_(world) {
  std::vector<int> all(static_cast<std::size_t>(world.size));
  std::iota(all.begin(), all.end(), 0);
  add(core::kWorldGroup, std::move(all));
}

void ProcessSets::add(core::GroupId id, std::vector<int> members) {
  auto set = std::make_shared<Group>(Group{id, std::move(members), 0});
  set->position = set->position_of(world_.rank);
  const std::lock_guard lock(mutex_);
  sets_[id] = std::move(set);
}

void ProcessSets::remove(core::GroupId id) {
  const std::lock_guard lock(mutex_);
  sets_.erase(id);
}

GroupPtr ProcessSets::find(core::GroupId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : found->second;
}

core::Result<GroupPtr> ProcessSets::own(core::GroupId id) const {
  GroupPtr set = find(id);
  if (set == nullptr) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       fmt::format("process set {} is not registered", id)};
  }
  if (set->position < 0) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       fmt::format("rank {} is not in process set {}, whose ranks are [{}]",
                                   world_.rank, id, fmt::join(set->members, ", "))};
  }
  return set;
}

}  // namespace fasthorovod::ops
