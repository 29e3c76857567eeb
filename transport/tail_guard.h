// Near the end of what there is to send, a slow flow leaves chunks to faster ones: with one more it
// would still be sending when the others are through.
//
// A flow leaves the next chunk when it would need longer to carry it, after what it holds already,
// than all flows together need for what nobody has taken, and two chunks of the fastest; but never
// one that costs it less than 10 ms, for rates are not known so well. Nobody
// promises that another takes it (it may stand still just now), so patience ends: when nothing was
// taken for as long as the slow flow would have needed itself, it takes the chunk.
//
// Thread: owner; one object a flow.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "transport/chunk_work.h"
#include "transport/peer_rates.h"

namespace fasthorovod::transport {

class TailGuard final {
 public:
  /// A flow of half the fastest's rate or more leaves nothing, and need not ask.
  [[nodiscard]] static bool concerns(const PeerRates::Comparison& rates);

  /// `held`: bytes the flow was given that are not acknowledged yet. True: leave the next chunk to
  /// others, and ask again soon.
  [[nodiscard]] bool leaves(const Backlog& backlog, std::uint64_t held,
                            const PeerRates::Comparison& rates, core::TimePoint now);

 private:
  bool waits_ = false;
  std::uint64_t untaken_then_ = 0;
  core::TimePoint since_{};
};

}  // namespace fasthorovod::transport
