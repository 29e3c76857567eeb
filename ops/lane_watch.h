// How long a caller that drives a lane stays awake for what comes over the network, offering its
// core to whoever needs it meanwhile. To be woken takes longer than a small message travels, so
// that is worth much where waits are short, and costs processor time for nothing where they are
// long. Which it is shows in the waits before: how long they took does not depend much on whether
// the caller slept.
//
// Thread: owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "core/clock.h"

namespace fasthorovod::ops {

class LaneWatch final {
 public:
  /// `ranks` share this host.
  explicit LaneWatch(std::size_t ranks);

  /// An operation begins: nobody has waited yet.
  void begin() { began_.reset(); }
  /// Something has happened.
  void restart();
  /// Whether it would stay awake for long: as far as is known, waits end soon.
  [[nodiscard]] bool waits_are_short() const;
  /// Lets some time pass. False: it is time to sleep.
  bool wait();

 private:
  void yield(core::TimePoint now);

  const bool has_core_;
  std::optional<core::TimePoint> began_;
  core::Duration usual_{};  // wait, as of late
  // A yield that takes long gave the core to a program that has nothing to do with the answer.
  core::TimePoint keeps_core_until_{};
  core::Duration keeps_core_for_{};
};

}  // namespace fasthorovod::ops
