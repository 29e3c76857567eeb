#include "ops/taken_threads.h"

#include <chrono>
#include <utility>

namespace fasthorovod::ops {

void TakenThreads::take(transport::LaneSet& lanes) {
  if (lanes.try_take()) lanes_ = &lanes;
}

void TakenThreads::take(HostTeam& team) {
  if (team.try_take()) team_ = &team;
}

bool TakenThreads::step() {
  const bool inside = team_ != nullptr && team_->step();
  const bool outside = lanes_ != nullptr && lanes_->step(std::chrono::milliseconds(0));
  return inside || outside;
}

bool TakenThreads::sleep(const std::atomic<bool>& wanted, core::Duration limit) {
  if (team_ == nullptr) return lanes_->step(std::chrono::ceil<std::chrono::milliseconds>(limit));
  if (lanes_ != nullptr) std::exchange(lanes_, nullptr)->give_back(true);
  team_->sleep(wanted, limit);
  return false;
}

bool TakenThreads::stopping() const {
  return (lanes_ != nullptr && lanes_->stopping()) || (team_ != nullptr && team_->stopping());
}

void TakenThreads::give_back(bool at_once) {
  if (lanes_ != nullptr) std::exchange(lanes_, nullptr)->give_back(at_once);
  if (team_ != nullptr) std::exchange(team_, nullptr)->give_place_back();
}

}  // namespace fasthorovod::ops
