#include "ops/host_bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace fasthorovod::ops {
namespace {

// Not FUTEX_PRIVATE: the word is shared with other processes.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit = nullptr) {
  (void)::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit,
                  nullptr, 0);
}

}  // namespace

void HostBell::ring() noexcept {
  if (state_.load() == kAwake) return;
  const std::uint32_t before = state_.exchange(kAwake);
  if (before == kAwake) return;
  rings_.fetch_add(1);
  if (before == kAsleep) futex(rings_, FUTEX_WAKE, 1);
}

std::uint32_t HostBell::doze() noexcept {
  const std::uint32_t since = rings_.load();
  state_.store(kDozing);
  return since;
}

void HostBell::sleep(std::uint32_t since, const HostWatch& watch) noexcept {
  for (HostWatch::Turn turn = watch.begin(); watch.goes_on(turn); watch.pause()) {
    if (rings_.load() != since) return;
  }
  // Who rang meanwhile has set it awake.
  std::uint32_t dozing = kDozing;
  if (!state_.compare_exchange_strong(dozing, kAsleep)) return;
  // Returns at once when it was rung already, and now and then for no reason.
  futex(rings_, FUTEX_WAIT, since);
  stay_awake();
}

void HostBell::sleep(std::uint32_t since, std::chrono::nanoseconds limit) noexcept {
  std::uint32_t dozing = kDozing;
  if (!state_.compare_exchange_strong(dozing, kAsleep)) return;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec relative{limit.count() / kSecond, limit.count() % kSecond};
  futex(rings_, FUTEX_WAIT, since, &relative);
  stay_awake();
}

}  // namespace fasthorovod::ops
