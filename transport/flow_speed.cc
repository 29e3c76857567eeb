#include "transport/flow_speed.h"

#include <chrono>

namespace fasthorovod::transport {
namespace {

// Not acknowledged at once even where nothing holds it up: the end of what was written.
constexpr std::uint64_t kNextToNothing = 16 << 10;
// More than a gigabit a second.
constexpr std::uint64_t kMuch = 256 << 10;
constexpr auto kWithin = std::chrono::milliseconds(2);

}  // namespace

void FlowSpeed::observe(core::TimePoint now, std::uint64_t written, std::uint64_t waiting) {
  const bool drained = waiting <= kNextToNothing;
  if (!drained) unlimited_ = false;
  if (!drained || now - since_ > kWithin) {
    since_ = now;
    written_then_ = written;
  } else if (written - written_then_ >= kMuch) {
    unlimited_ = true;
  }
}

}  // namespace fasthorovod::transport
