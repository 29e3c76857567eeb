// The groups that the coordinator matches requests in: the world, and those that ranks added.
// Thread: owner.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/membership.h"
#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::core {

struct KnownGroup {
  GroupId id = kWorldGroup;
  std::vector<int> ranks;           // world ranks, ascending
  int active = 0;                   // how many of them are active
  std::optional<int> first_left{};  // the first of them that left
  bool removed = false;

  [[nodiscard]] bool includes(int rank) const;
};

class GroupRegistry final {
 public:
  explicit GroupRegistry(const Membership& membership);

  /// Null for one that never was. A removed one is still found. Its address stays.
  [[nodiscard]] const KnownGroup* find(GroupId id) const;
  [[nodiscard]] const KnownGroup& world() const { return groups_.begin()->second; }

  /// Why this change of groups, on which all ranks agree, cannot be; nothing when it can.
  [[nodiscard]] std::optional<std::string> refusal(const Request& change) const;

  /// Makes a change that is not refused: the group that was added, under an id that was never used,
  /// or removed.
  const KnownGroup& apply(const Request& change);

  /// The membership changed: counts anew who is active.
  void recount();

  /// A rank left: notes it in its groups, and counts anew.
  void leave(int rank);

  /// Groups of a rank that left: nothing runs in them any more.
  [[nodiscard]] std::vector<const KnownGroup*> broken() const;

 private:
  void count(KnownGroup& group) const;
  [[nodiscard]] const KnownGroup* find(const std::vector<int>& ranks) const;

  const Membership& membership_;
  std::map<GroupId, KnownGroup> groups_;
};

}  // namespace fasthorovod::core
