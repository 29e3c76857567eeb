// How long a caller that runs its operation itself stays awake for an answer: a moment with its
// core, then longer, but offering its core to whoever needs it, which costs little where nobody
// does. The rank that is waited for may need this core, also where there are enough for all.
//
// Thread: owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "core/clock.h"

namespace fasthorovod::ops {

class CallerWatch final {
 public:
  static constexpr std::chrono::microseconds kSpin{1};
  static constexpr std::chrono::microseconds kYield{200};

  /// `ranks` share this host.
  explicit CallerWatch(std::size_t ranks);

  /// Something has happened: the next answer may come at once again.
  void restart() { began_.reset(); }
  /// Lets some time pass. False: it is time to sleep.
  bool wait();

 private:
  const core::Duration spin_;
  std::optional<core::TimePoint> began_;
  int short_yields_ = 0;  // since then
};

}  // namespace fasthorovod::ops
