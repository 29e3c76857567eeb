// Whether anything but the processors limits a flow. Where much is written in little time and the
// flow is found drained again and again, nothing does, and one flow carries what several would,
// with fewer packets. It takes more than networks that limit a flow let pass as a burst to believe
// that; a flow that is not found drained for a while is believed no longer.
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
  core::TimePoint last_drained_{};
  core::TimePoint since_{};  // of these looks
  std::uint64_t written_then_ = 0;
};

}  // namespace fasthorovod::transport
