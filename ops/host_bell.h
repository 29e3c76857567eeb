// Sleeping until another thread, of this process or of another one on this host, has published
// something: one word in shared memory to sleep on, and a flag that saves the ringers a system call
// while nobody sleeps.
//
// Whoever publishes stores (seq_cst) and then rings; the sleeper says that it dozes, looks once
// more at everything it waits for (seq_cst loads), and sleeps. One of the two sees the other.
// Thread: one sleeper; ring from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ops/host_watch.h"

namespace fasthorovod::ops {

class HostBell final {
 public:
  /// Wakes the sleeper, if it sleeps or is about to.
  void ring() noexcept;

  /// Begins to sleep: the caller looks once more at what it waits for, and then calls sleep() or
  /// stay_awake(). Returns what sleep() takes.
  [[nodiscard]] std::uint32_t doze() noexcept;
  void stay_awake() noexcept { state_.store(kAwake); }
  /// Until the next ring after doze(); awake for as long as `watch` says, in case it comes soon.
  void sleep(std::uint32_t since, const HostWatch& watch) noexcept;
  /// The same without staying awake, and at most for `limit`.
  void sleep(std::uint32_t since, std::chrono::nanoseconds limit) noexcept;

 private:
  enum State : std::uint32_t { kAwake = 0, kDozing = 1, kAsleep = 2 };

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> state_{kAwake};  // partner: ring()
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

}  // namespace fasthorovod::ops
