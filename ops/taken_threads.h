// What a caller that runs its operation itself has taken over from the engine's threads: the loop
// of the rank's lane, the place of its team's thread, or both (docs/design.md, "Who drives what").
//
// There is no one place to sleep for both: the lane's poll hears the network, a bell in shared
// memory the mates. Who has both and must sleep gives the lane back to its thread, and sleeps on
// the bell, which that thread and whoever posts to the worker ring, too.
//
// Thread: owner, which has the worker's turn.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "ops/host_team.h"
#include "transport/lane_set.h"

namespace fasthorovod::ops {

class TakenThreads final {
 public:
  TakenThreads() = default;
  TakenThreads(const TakenThreads&) = delete;
  TakenThreads& operator=(const TakenThreads&) = delete;
  /// After give_back().
  ~TakenThreads() = default;

  /// Where they can be had now.
  void take(transport::LaneSet& lanes);
  void take(HostTeam& team);

  [[nodiscard]] bool has_any() const { return lanes_ != nullptr || team_ != nullptr; }
  /// A turn of each. False: nothing happened.
  bool step();
  /// Until something may have happened, or `wanted` is set, or stopping(); at most for `limit`.
  /// Whether it is known that something has.
  bool sleep(const std::atomic<bool>& wanted, core::Duration limit);
  /// True: all is to be given back at once.
  [[nodiscard]] bool stopping() const;
  /// The threads go on. `at_once`: the lane has work.
  void give_back(bool at_once);

 private:
  transport::LaneSet* lanes_ = nullptr;
  HostTeam* team_ = nullptr;
};

}  // namespace fasthorovod::ops
