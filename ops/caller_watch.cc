#include "ops/caller_watch.h"

#include <sched.h>

#include <atomic>
#include <thread>

#include "ops/host_watch.h"

namespace fasthorovod::ops {
namespace {

// How long a caller stays awake in all where every rank has a core: about what a sleep costs. And
// when that was in vain several times, since the ranks share a core all the same: only a sleep then
// lets the other one run at once.
constexpr std::chrono::microseconds kWithCores{20};
constexpr std::chrono::microseconds kInVain{3};
constexpr int kSleepsInARow = 2;
constexpr int kWaitsWithoutSleep = 4;
// A yield that took less gave the core to nobody: who is waited for may wait for this core all the
// same, where the system shares out cores by sessions first. After so many of them in a wait only a
// sleep helps.
constexpr std::chrono::nanoseconds kShortYield{800};
constexpr int kShortYields = 20;
// A yield that took longer gave the core to a program that has nothing to do with the answer. For
// some time nothing is yielded then: a sleeper gets its core back as soon as it is rung.
constexpr std::chrono::microseconds kLongYield{500};
constexpr std::chrono::milliseconds kUnyielding{50};

// What the process has learnt. Partners of nothing: their values alone matter.
constexpr auto kRelaxed = std::memory_order_relaxed;
std::atomic<core::TimePoint> keeps_core_until{core::TimePoint{}};
std::atomic<int> sleeps{0};         // in a row, as far as waits were short
std::atomic<int> without_sleep{0};  // waits since the last sleep
static_assert(std::atomic<core::TimePoint>::is_always_lock_free);

void note_wait() {
  if (without_sleep.fetch_add(1, kRelaxed) >= kWaitsWithoutSleep) sleeps.store(0, kRelaxed);
}

bool sleep_now() {
  without_sleep.store(0, kRelaxed);
  sleeps.fetch_add(1, kRelaxed);
  return false;
}

core::Duration yield(core::TimePoint now) {
  (void)::sched_yield();
  const core::TimePoint after = core::Clock::now();
  if (after - now > kLongYield) keeps_core_until.store(after + kUnyielding, kRelaxed);
  return after - now;
}

}  // namespace

CallerWatch::CallerWatch(std::size_t ranks)
    : spin_(std::thread::hardware_concurrency() >= ranks ? kSpin : std::chrono::microseconds(0)) {}

bool CallerWatch::wait() {
  const core::TimePoint now = core::Clock::now();
  if (!began_) {
    began_ = now;
    short_yields_ = 0;
    note_wait();
  }
  const core::Duration waited = now - *began_;
  const bool has_core = spin_.count() > 0;
  const bool keeps_core = now < keeps_core_until.load(kRelaxed);
  const auto awake = !has_core                                ? kYield
                     : sleeps.load(kRelaxed) >= kSleepsInARow ? kInVain
                                                              : kWithCores;
  if (waited >= awake) return sleep_now();
  if (has_core && (waited < spin_ || keeps_core)) {
    for (int i = 0; i < 4; ++i) relax();
    return true;
  }
  if (keeps_core) return sleep_now();
  if (yield(now) < kShortYield) ++short_yields_;
  return has_core || short_yields_ < kShortYields || sleep_now();
}

}  // namespace fasthorovod::ops
