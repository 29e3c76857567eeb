// How long a thread stays awake for an answer that may come at once, before it sleeps: a sleep
// costs several microseconds, and a wait that takes a core from the one waited for costs more.
// Immutable; any thread.
#pragma once

#include <chrono>
#include <cstddef>

#include "core/clock.h"

namespace fasthorovod::ops {

/// Lets the other threads of this core, and its neighbour's, have the bus for a moment.
void relax();

class HostWatch final {
 public:
  static constexpr std::chrono::microseconds kSpin{20};
  static constexpr int kYields = 8;

  /// `ranks` share this host: with a core for each they spin for kSpin, else they yield kYields
  /// times.
  explicit HostWatch(std::size_t ranks);

  struct Turn {
    core::TimePoint until;
    int yields = 0;
  };
  [[nodiscard]] Turn begin() const;
  /// Whether it is too early to sleep.
  [[nodiscard]] bool goes_on(Turn& turn) const;
  void pause() const;

 private:
  const bool spins_;
};

}  // namespace fasthorovod::ops
