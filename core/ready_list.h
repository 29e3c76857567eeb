// What the coordinator has settled and not yet planned, and when it is worth planning. Thread:
// owner.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/clock.h"
#include "core/known_tensor.h"
#include "core/result.h"

namespace fasthorovod::core {

/// Something that runs, or fails, as a whole.
struct ReadyUnit {
  std::vector<KnownTensor*> tensors;  // one, or a whole bundle; none for a join
  std::optional<Error> error{};       // set: nothing runs, all of them fail with it
  int last_joined = -1;               // join only
  GroupId changed = kWorldGroup;      // change of groups only: the one added or removed

  [[nodiscard]] bool is_join() const { return tensors.empty(); }
  [[nodiscard]] bool changes_group() const { return changed != kWorldGroup; }
};

class ReadyList final {
 public:
  ReadyList(std::uint64_t fusion_threshold, Duration fusion_wait)
      : threshold_(fusion_threshold), wait_(fusion_wait) {}

  void push(ReadyUnit unit, TimePoint now);

  /// Nothing of a group in the list runs any more: what has no error yet fails with this one.
  /// Changes of groups stand: they are made already, and need no rank.
  void fail_all(const KnownGroup& group, const Error& error);

  /// Whether to plan now. `nothing_to_gain`: the network is idle and no tensor of these groups is
  /// on its way. Otherwise what is there may wait a little for more to fuse with, if it can fuse.
  [[nodiscard]] bool is_due(TimePoint now, bool nothing_to_gain) const;

  /// The groups of what is in the list.
  [[nodiscard]] const std::set<GroupId>& groups() const { return groups_; }

  /// When is_due becomes true by time alone; no value while the list is empty.
  [[nodiscard]] std::optional<TimePoint> deadline() const;

  /// Takes the units of the next plan: all, or as many as fit a message. Those left are due at
  /// once.
  std::vector<ReadyUnit> take();

 private:
  [[nodiscard]] bool is_urgent() const { return urgent_ || bytes_ >= threshold_; }

  std::uint64_t threshold_;
  Duration wait_;
  std::vector<ReadyUnit> units_;
  std::set<GroupId> groups_;
  TimePoint first_{};        // when the oldest became ready
  std::uint64_t bytes_ = 0;  // of what can fuse
  bool urgent_ = false;      // something cannot fuse, so waiting gains it nothing
};

}  // namespace fasthorovod::core
