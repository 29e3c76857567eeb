// The groups this rank is a member of. Group 0 is the world and always there.
//
// Thread: any; a mutex guards the table. A Group is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/request.h"
#include "core/result.h"
#include "core/world.h"

namespace fasthorovod::ops {

struct Group {
  core::GroupId id = core::kWorldGroup;
  std::vector<int> members;  // world ranks by position
  int position = 0;          // of this rank

  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
  [[nodiscard]] int world_rank(int at) const { return members[static_cast<std::size_t>(at)]; }
  /// Where a world rank stands, or -1.
  [[nodiscard]] int position_of(int world_rank) const;
};

/// Owners: the table, and the operations that are under way when a group is removed.
using GroupPtr = std::shared_ptr<const Group>;

class GroupTable final {
 public:
  explicit GroupTable(const core::World& world);

  /// kInvalidArgument: an id in use or too large, members twice, out of range, or without this
  /// rank.
  core::Status add(core::GroupId id, std::vector<int> members);
  /// The group that was removed; null for one that is not there, and for the world.
  GroupPtr remove(core::GroupId id);
  /// kInvalidArgument when it is not there.
  [[nodiscard]] core::Result<GroupPtr> find(core::GroupId id) const;

 private:
  const core::World& world_;
  mutable std::mutex mutex_;
  std::unordered_map<core::GroupId, GroupPtr> groups_;
};

}  // namespace fasthorovod::ops
