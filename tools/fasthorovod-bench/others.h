// How much of the machine's processors others used: figures of a busy machine mean less. Thread:
// owner.
#pragma once

#include <optional>

#include "core/clock.h"

namespace fasthorovod::tools {

class Others final {
 public:
  /// Counts from now on.
  Others();

  /// Processors that others than this process used, of all there are, 0 to 1; nothing where the
  /// system does not say. The kernel counts in hundredths of a second, so less than half a second
  /// says little.
  [[nodiscard]] std::optional<double> share() const;

 private:
  core::TimePoint start_;
  std::optional<double> all_;
  double own_;
};

}  // namespace fasthorovod::tools
