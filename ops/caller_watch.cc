#include "ops/caller_watch.h"

#include <sched.h>

#include <thread>

#include "ops/host_watch.h"

namespace fasthorovod::ops {

CallerWatch::CallerWatch(std::size_t ranks)
    : spin_(std::thread::hardware_concurrency() >= ranks ? kSpin : std::chrono::microseconds(0)) {}

bool CallerWatch::wait() {
  const core::TimePoint now = core::Clock::now();
  if (!began_) began_ = now;
  if (now >= *began_ + spin_) {
    if (now >= *began_ + spin_ + kYield) return false;
    (void)::sched_yield();
    return true;
  }
  for (int i = 0; i < 4; ++i) relax();
  return true;
}

}  // namespace fasthorovod::ops
