// The process sets of the named door, as this rank knows them: plans add and remove them, so all
// ranks do so between the same two operations. Set 0 is the world and always there.
//
// Thread: any; a mutex guards the table. A Group is immutable. Position is -1 in a set that this
// rank is not in.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/request.h"
#include "core/result.h"
#include "core/world.h"
#include "ops/group_table.h"

namespace fasthorovod::ops {

class ProcessSets final {
 public:
  explicit ProcessSets(const core::World& world);

  void add(core::GroupId id, std::vector<int> members);
  void remove(core::GroupId id);

  /// Null when it is not there.
  [[nodiscard]] GroupPtr find(core::GroupId id) const;

  /// The set, for a rank that uses it. kInvalidArgument: it is not there, or without this rank.
  [[nodiscard]] core::Result<GroupPtr> own(core::GroupId id) const;

 private:
  const core::World& world_;
  mutable std::mutex mutex_;
  std::unordered_map<core::GroupId, GroupPtr> sets_;
};

}  // namespace fasthorovod::ops
