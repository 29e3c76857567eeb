#include "transport/flow_speed.h"

#include <chrono>

namespace fasthorovod::transport {
namespace {

using std::chrono::microseconds;

// Not acknowledged at once even where nothing holds it up: the end of what was written.
constexpr std::uint64_t kNextToNothing = 16 << 10;
// More than two gigabits a second.
constexpr std::uint64_t kMuch = 512 << 10;
constexpr microseconds kLittleTime{2000};
// A receiver that is busy acknowledges later.
constexpr microseconds kAgain{500};

}  // namespace

void FlowSpeed::observe(core::TimePoint now, std::uint64_t written, std::uint64_t waiting) {
  const bool again = now - last_drained_ <= kAgain;
  if (waiting > kNextToNothing) {
    unlimited_ = unlimited_ && again;
    return;
  }
  last_drained_ = now;
  if (!again || now - since_ > kLittleTime) {
    since_ = now;
    written_then_ = written;
  } else if (written - written_then_ >= kMuch) {
    unlimited_ = true;
  }
}

}  // namespace fasthorovod::transport
