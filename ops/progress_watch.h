// Notices that something is pending here and nothing has moved for too long: a rank that stopped in
// the middle of an operation, or a coordinator that fell silent. Pure: somebody tells it the time.
// Thread: owner (the engine thread).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace fasthorovod::ops {

class ProgressWatch final {
 public:
  /// A limit of zero never notices anything.
  explicit ProgressWatch(core::Duration limit) : limit_(limit) {}

  [[nodiscard]] bool enabled() const { return limit_ > core::Duration::zero(); }

  [[nodiscard]] core::Duration limit() const { return limit_; }

  /// How long to wait before looking again while something is pending. Short, so that all ranks
  /// notice at about the same time: who concludes much later would take that for another fault.
  [[nodiscard]] core::Duration interval() const {
    return std::min<core::Duration>(limit_ / 4, std::chrono::seconds(1));
  }

  /// True when something has been pending since the limit and `progress`, a number that changes
  /// whenever anything moves, has not changed.
  bool stalled(bool pending, std::uint64_t progress, core::TimePoint now);

 private:
  const core::Duration limit_;
  bool watching_ = false;
  std::uint64_t progress_ = 0;
  core::TimePoint since_;
};

}  // namespace fasthorovod::ops
