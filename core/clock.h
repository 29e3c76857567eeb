// Monotonic time, injected so that tests own it. Only the monotonic clock decides anything.
#pragma once

#include <chrono>

namespace fasthorovod::core {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

}  // namespace fasthorovod::core
