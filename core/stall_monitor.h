// When somebody should hear that ranks wait for others, and when waiting must end. Decides on times
// and texts only; who waits for whom is the caller's to know. Thread: owner.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"

namespace fasthorovod::core {

/// What is remembered of one wait.
struct StallState {
  TimePoint since{};
  Duration warn_after{};  // the waiting time at which the next warning is due
};

/// Something that waits, as the caller presents it.
struct Waiting {
  std::string_view name;
  StallState* state = nullptr;  // updated when a warning is given
  std::vector<int> missing;     // the ranks it waits for, ascending, not empty
};

class StallMonitor final {
 public:
  /// Zero switches the warning or the limit off.
  StallMonitor(Duration warning, Duration limit) : warning_(warning), limit_(limit) {}

  /// A wait begins.
  StallState begin(TimePoint since);

  /// When check() must be called next; the caller need not call it before, and never does when this
  /// is empty. Early is harmless: a wait that ended is not taken out.
  [[nodiscard]] std::optional<TimePoint> next_check() const { return next_check_; }

  struct Report {
    std::vector<std::string> warnings;  // one a set of missing ranks
    std::vector<std::size_t> expired;   // indices of those past the limit
  };

  /// Looks at everything that waits now.
  Report check(const std::vector<Waiting>& waiting, TimePoint now);

 private:
  void schedule(const StallState& state);

  Duration warning_;
  Duration limit_;
  std::optional<TimePoint> next_check_;
};

/// "61 s"
std::string describe_seconds(Duration duration);

}  // namespace fasthorovod::core
