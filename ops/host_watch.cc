#include "ops/host_watch.h"

#include <sched.h>

#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fasthorovod::ops {

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

HostWatch::HostWatch(std::size_t ranks) : spins_(std::thread::hardware_concurrency() >= ranks) {}

HostWatch::Turn HostWatch::begin() const {
  return {spins_ ? core::Clock::now() + kSpin : core::TimePoint{}};
}

bool HostWatch::goes_on(Turn& turn) const {
  return spins_ ? core::Clock::now() < turn.until : turn.yields++ < kYields;
}

void HostWatch::pause() const {
  if (!spins_) {
    (void)::sched_yield();
    return;
  }
  for (int i = 0; i < 8; ++i) relax();
}

}  // namespace fasthorovod::ops
