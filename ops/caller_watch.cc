#include "ops/caller_watch.h"

#include <sched.h>

#include <atomic>
#include <thread>

#include "ops/host_watch.h"

namespace fasthorovod::ops {
namespace {

// How long a caller stays awake in all where every rank has a core: about what a sleep costs.
constexpr std::chrono::microseconds kWithCores{20};
// A yield that took longer gave the core to a program that has nothing to do with the answer. For
// some time nothing is yielded then: a sleeper gets its core back as soon as it is rung.
constexpr std::chrono::microseconds kLongYield{500};
constexpr std::chrono::milliseconds kUnyielding{50};

// Until when; of the whole process. Its value alone matters.
std::atomic<core::TimePoint> keeps_core_until{core::TimePoint{}};
static_assert(std::atomic<core::TimePoint>::is_always_lock_free);

void yield(core::TimePoint now) {
  (void)::sched_yield();
  const core::TimePoint after = core::Clock::now();
  if (after - now > kLongYield) {
    keeps_core_until.store(after + kUnyielding, std::memory_order_relaxed);
  }
}

}  // namespace

CallerWatch::CallerWatch(std::size_t ranks)
    : spin_(std::thread::hardware_concurrency() >= ranks ? kSpin : std::chrono::microseconds(0)) {}

bool CallerWatch::wait() {
  const core::TimePoint now = core::Clock::now();
  if (!began_) began_ = now;
  const core::Duration waited = now - *began_;
  const bool has_core = spin_.count() > 0;
  const bool keeps_core = now < keeps_core_until.load(std::memory_order_relaxed);
  if (has_core && (waited < spin_ || (keeps_core && waited < kWithCores))) {
    for (int i = 0; i < 4; ++i) relax();
    return true;
  }
  if (keeps_core || waited >= (has_core ? kWithCores : kYield)) return false;
  yield(now);
  return true;
}

}  // namespace fasthorovod::ops
