// Whether anything but the processors limits a flow. Where it is found drained at every look while
// much is written, nothing does, and one flow carries what several would, with fewer packets. It
// takes more than networks that limit a flow let pass as a burst to believe that, and one look that
// finds bytes on their way not to.
//
// Thread: owner.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace fasthorovod::transport {

class FlowSpeed final {
 public:
  /// A look, as of FlowRate::observe().
  void observe(core::TimePoint now, std::uint64_t written, std::uint64_t waiting);

  [[nodiscard]] bool unlimited() const { return unlimited_; }

 private:
  bool unlimited_ = false;
  core::TimePoint since_{};
  std::uint64_t written_then_ = 0;
};

}  // namespace fasthorovod::transport
