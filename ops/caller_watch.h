// How long a caller that runs its operation itself stays awake for an answer: some microseconds
// with its core, as long as the answer of a rank that runs takes, then as long again as a sleep
// would cost, but offering its core to others. Where ranks have no core each, the one waited for
// may need this one.
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
  static constexpr std::chrono::microseconds kSpin{3};
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
};

}  // namespace fasthorovod::ops
