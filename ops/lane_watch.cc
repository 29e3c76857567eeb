#include "ops/lane_watch.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "ops/host_watch.h"

namespace fasthorovod::ops {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kWithCore{1};  // before the core is offered to others
constexpr microseconds kAwake{400};
constexpr microseconds kInVain{3};
// Where waits take longer than this, the time to be woken does not count.
constexpr microseconds kShortWait{200};
constexpr microseconds kLongestCounted{800};
constexpr int kShare = 8;  // a wait is one part in so many of what is usual
// While no core is offered to others, a caller sleeps after this time: a sleeper gets its core back
// as soon as it is woken. It is more than a wait takes where both sides sleep, lest they go on so.
constexpr microseconds kKeepsCore{60};
constexpr microseconds kLongYield{500};
constexpr milliseconds kLeast{1};
constexpr milliseconds kMost{16};

}  // namespace

LaneWatch::LaneWatch(std::size_t ranks) : has_core_(std::thread::hardware_concurrency() >= ranks) {}

void LaneWatch::restart() {
  if (!began_) return;
  const core::Duration waited =
      std::min<core::Duration>(core::Clock::now() - *began_, kLongestCounted);
  usual_ += (waited - usual_) / kShare;
  began_.reset();
}

bool LaneWatch::waits_are_short() const { return usual_ <= kShortWait; }

bool LaneWatch::wait() {
  const core::TimePoint now = core::Clock::now();
  if (!began_) began_ = now;
  const core::Duration waited = now - *began_;
  const bool keeps_core = now < keeps_core_until_;
  const core::Duration awake = !waits_are_short() ? kInVain : keeps_core ? kKeepsCore : kAwake;
  if (waited >= awake) return false;
  if (has_core_ && (waited < kWithCore || keeps_core)) {
    for (int i = 0; i < 4; ++i) relax();
    return true;
  }
  if (keeps_core) return false;
  yield(now);
  return true;
}

// The next time comes sooner, the longer it is since the last one.
void LaneWatch::yield(core::TimePoint now) {
  (void)::sched_yield();
  const core::TimePoint after = core::Clock::now();
  if (after - now < kLongYield) return;
  const bool again = now < keeps_core_until_ + 4 * keeps_core_for_;
  keeps_core_for_ = again ? std::min<core::Duration>(2 * keeps_core_for_, kMost) : kLeast;
  keeps_core_until_ = after + keeps_core_for_;
}

}  // namespace fasthorovod::ops
