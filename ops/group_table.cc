#include "ops/group_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "ops/wire_group.h"

namespace fasthorovod::ops {
namespace {

core::Error refuse(core::GroupId id, const std::string& why) {
  return {core::ErrorCode::kInvalidArgument, fmt::format("group {} {}", id, why)};
}

}  // namespace

int Group::position_of(int world_rank) const {
  const auto found = std::ranges::find(members, world_rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

GroupTable::GroupTable(const core::World& world) : world_(world) {
  auto all = std::make_shared<Group>();
  all->members.resize(static_cast<std::size_t>(world.size));
  std::iota(all->members.begin(), all->members.end(), 0);
  all->position = world.rank;
  groups_.emplace(core::kWorldGroup, std::move(all));
}

core::Status GroupTable::add(core::GroupId id, std::vector<int> members) {
  if (id >= kGroupIds) return refuse(id, "has too large an id");
  if (std::set<int>(members.begin(), members.end()).size() != members.size()) {
    return refuse(id, "names a rank twice");
  }
  for (const int member : members) {
    if (member < 0 || member >= world_.size) {
      return refuse(id, fmt::format("names rank {} in a world of {}", member, world_.size));
    }
  }
  auto group = std::make_shared<Group>(Group{id, std::move(members), 0});
  group->position = group->position_of(world_.rank);
  if (group->position < 0) return refuse(id, "does not name this rank");
  const std::lock_guard lock(mutex_);
  if (!groups_.emplace(id, std::move(group)).second) return refuse(id, "is there already");
  return {};
}

GroupPtr GroupTable::remove(core::GroupId id) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(id);
  if (id == core::kWorldGroup || found == groups_.end()) return nullptr;
  GroupPtr group = std::move(found->second);
  groups_.erase(found);
  return group;
}

core::Result<GroupPtr> GroupTable::find(core::GroupId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(id);
  if (found == groups_.end()) return refuse(id, "is not known to this rank");
  return found->second;
}

}  // namespace fasthorovod::ops
