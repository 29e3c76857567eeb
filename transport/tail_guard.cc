#include "transport/tail_guard.h"

#include <chrono>

namespace fasthorovod::transport {
namespace {

// Rates are estimates: flows of one kind come out half as fast now and then, and where a flow
// carries but a few chunks, leaving one to another flow doubles what that one has to carry.
constexpr double kFastEnough = 0.5;
constexpr double kChunksOfTheFastest = 2;
constexpr double kLittleSeconds = 0.01;  // the most that a chunk not left to others may cost

}  // namespace

bool TailGuard::concerns(const PeerRates::Comparison& rates) {
  return rates.own < kFastEnough * rates.fastest;
}

bool TailGuard::leaves(const Backlog& backlog, std::uint64_t held,
                       const PeerRates::Comparison& rates, core::TimePoint now) {
  if (backlog.untaken == 0) return waits_ = false;  // nobody knows, or small frames only
  const auto next = static_cast<double>(backlog.next);
  const double own_time = (static_cast<double>(held) + next) / rates.own;
  if (own_time < kLittleSeconds) return waits_ = false;
  const double others_time =
      static_cast<double>(backlog.untaken) / rates.sum + kChunksOfTheFastest * next / rates.fastest;
  if (own_time <= others_time) return waits_ = false;
  if (!waits_ || backlog.untaken != untaken_then_) {
    waits_ = true;
    untaken_then_ = backlog.untaken;
    since_ = now;
  }
  if (std::chrono::duration<double>(now - since_).count() < own_time) return true;
  return waits_ = false;
}

}  // namespace fasthorovod::transport
