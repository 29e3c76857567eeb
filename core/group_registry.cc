#include "core/group_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fasthorovod::core {

bool KnownGroup::includes(int rank) const { return std::ranges::binary_search(ranks, rank); }

GroupRegistry::GroupRegistry(const Membership& membership) : membership_(membership) {
  KnownGroup world;
  world.ranks.resize(static_cast<std::size_t>(membership.size()));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  count(world);
  groups_.emplace(kWorldGroup, std::move(world));
}

const KnownGroup* GroupRegistry::find(GroupId id) const {
  const auto found = groups_.find(id);
  return found == groups_.end() ? nullptr : &found->second;
}

const KnownGroup* GroupRegistry::find(const std::vector<int>& ranks) const {
  const auto found = std::ranges::find_if(groups_, [&](const auto& entry) {
    return !entry.second.removed && entry.second.ranks == ranks;
  });
  return found == groups_.end() ? nullptr : &found->second;
}

std::optional<std::string> GroupRegistry::refusal(const Request& change) const {
  if (change.members.empty()) return "a process set needs at least one rank";
  if (change.members.back() >= membership_.size()) {
    return fmt::format("rank {} is not one of the {} ranks", change.members.back(),
                       membership_.size());
  }
  const KnownGroup* same = find(change.members);
  const std::string ranks = fmt::format("[{}]", fmt::join(change.members, ", "));
  if (change.op == OpKind::kRemoveGroup) {
    if (same == nullptr) return fmt::format("there is no process set of the ranks {}", ranks);
    if (same->id == kWorldGroup) return "the set of all ranks cannot be removed";
    return std::nullopt;
  }
  if (same == nullptr) return std::nullopt;
  if (same->id == kWorldGroup) return "the set of all ranks is there already: global_process_set";
  return fmt::format("the ranks {} are a process set already, number {}", ranks, same->id);
}

const KnownGroup& GroupRegistry::apply(const Request& change) {
  if (change.op == OpKind::kRemoveGroup) {
    KnownGroup& group = groups_.at(find(change.members)->id);
    group.removed = true;
    group.ranks = {};  // only its number is kept, so that what comes too late is recognised
    group.active = 0;
    return group;
  }
  const GroupId id = groups_.rbegin()->first + 1;
  KnownGroup group{.id = id, .ranks = change.members};
  count(group);
  return groups_.emplace(id, std::move(group)).first->second;
}

void GroupRegistry::count(KnownGroup& group) const {
  group.active = static_cast<int>(
      std::ranges::count_if(group.ranks, [this](int rank) { return membership_.is_active(rank); }));
}

void GroupRegistry::recount() {
  for (auto& [id, group] : groups_) count(group);
}

void GroupRegistry::leave(int rank) {
  for (auto& [id, group] : groups_) {
    if (!group.first_left && group.includes(rank)) group.first_left = rank;
  }
  recount();
}

std::vector<const KnownGroup*> GroupRegistry::broken() const {
  std::vector<const KnownGroup*> found;
  for (const auto& [id, group] : groups_) {
    if (group.first_left && !group.removed) found.push_back(&group);
  }
  return found;
}

}  // namespace fasthorovod::core
