// How fast the flows to a peer drain, all of them, on whichever lanes of this process: what a flow
// must know to leave a chunk to a faster one.
//
// Thread: any. A lock guards a few numbers; it is taken only for moments.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "core/clock.h"

namespace fasthorovod::transport {

class PeerRates final {
 public:
  /// Names a flow; each has its own.
  using FlowKey = const void*;

  /// `rate` in bytes a second, 0 while it is unknown; `last_busy` as of FlowRate.
  void publish(FlowKey flow, double rate, core::TimePoint last_busy);
  void forget(FlowKey flow);

  /// False while no flow's rate has ever been known; needs no lock.
  [[nodiscard]] bool any_known() const { return any_known_.load(std::memory_order_relaxed); }

  /// What one flow can do beside all. A flow whose rate is not known counts as the fastest.
  struct Comparison {
    double own = 0;
    double fastest = 0;  // 0 while no rate is known
    double sum = 0;
  };

  /// A flow that stood still because its peer did not read looks slow, and one that looks slow is
  /// given little to prove otherwise. So what is believed of a flow that carries nothing doubles
  /// each quarter of a second, up to the fastest.
  [[nodiscard]] Comparison compare(FlowKey flow, core::TimePoint now) const;

 private:
  struct Entry {
    double rate = 0;
    core::TimePoint last_busy{};
  };

  std::atomic<bool> any_known_{false};  // partner of nothing: a late look costs a chunk
  mutable std::mutex mutex_;
  std::map<FlowKey, Entry> flows_;
};

/// The rates of all peers of a rank. Its lanes own it together: each may be the last one.
class RateBoard final {
 public:
  std::shared_ptr<PeerRates> of(int peer);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<PeerRates>> peers_;
};

}  // namespace fasthorovod::transport
