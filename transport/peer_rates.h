// How fast the flows to a peer drain, all of them, on whichever lanes of the rank: what a flow
// must know to leave a chunk to a faster one. And how many of them carry anything: the first ones
// that joined, as many as FlowCount finds good, or all. It is the sender's choice alone, since any
// flow may carry any chunk; the peer reads them all.
//
// Thread: any. A lock guards a few numbers; it is taken only for moments.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/flow_count.h"
#include "core/goodput_meter.h"

namespace fasthorovod::transport {

/// What is known of the flows to a peer. Rates in bytes a second, 0 while they are unknown.
struct PeerReport {
  struct Flow {
    double rate = 0;
    bool in_use = false;
  };
  int peer = -1;
  bool measures = false;        // how many are in use is found by trying
  bool tries = false;           // likewise, and just now another number than the one believed in
  bool waits_for_work = false;  // they ran out of bytes: the network is not the limit
  double goodput = 0;           // of those in use together, while the network is the limit
  std::vector<Flow> flows{};    // that lanes of this rank have
  std::vector<core::FlowCount::Experience> tried{};
};

class PeerRates final {
 public:
  /// Names a flow; each has its own.
  using FlowKey = const void*;

  /// `first`: how many are in use until more is known; nothing: all, for ever.
  explicit PeerRates(std::optional<int> first = std::nullopt);

  /// From now on the flow is one of those to the peer. `in_use` says whether it is to carry
  /// anything, and lives until it is forgotten. `taken_up` is called when that has become true, by
  /// whoever changed it and under the lock, so it must not block, or call back.
  void join(FlowKey flow, std::atomic<bool>& in_use, std::function<void()> taken_up = {});

  /// `rate` in bytes a second, 0 while it is unknown; `last_busy` as of FlowRate.
  void publish(FlowKey flow, double rate, core::TimePoint last_busy);
  /// It carries nothing any more. Nothing when it was forgotten already.
  void forget(FlowKey flow);

  /// As of GoodputMeter: it takes a chunk, or there is no work for the peer.
  void look(FlowKey flow, core::TimePoint now, std::uint64_t drained, bool dry);
  void rest(core::TimePoint now);

  [[nodiscard]] PeerReport report() const;

  /// False while no flow's rate has ever been known; needs no lock.
  [[nodiscard]] bool any_known() const { return any_known_.load(std::memory_order_relaxed); }

  /// What one flow can do beside all in use. A flow whose rate is not known counts as the fastest.
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
    FlowKey key;
    std::atomic<bool>* in_use;
    std::function<void()> taken_up;
    double rate = 0;
    core::TimePoint last_busy{};
  };

  std::vector<Entry>::iterator find(FlowKey flow);
  void learn(core::TimePoint now, const std::optional<double>& goodput);
  void share_out();

  std::atomic<bool> any_known_{false};  // partner of nothing: a late look costs a chunk
  mutable std::mutex mutex_;
  std::optional<core::FlowCount> count_;
  core::GoodputMeter meter_;
  double goodput_ = 0;
  std::size_t in_use_ = 0;    // of the first ones
  std::vector<Entry> flows_;  // in the order they joined
};

/// The rates of all peers of a rank. Its lanes own it together: each may be the last one.
class RateBoard final {
 public:
  /// As of PeerRates, for each peer.
  explicit RateBoard(std::optional<int> first = std::nullopt) : first_(first) {}

  std::shared_ptr<PeerRates> of(int peer);

  /// Of all peers that had a flow.
  [[nodiscard]] std::vector<PeerReport> reports() const;

 private:
  const std::optional<int> first_;
  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<PeerRates>> peers_;
};

}  // namespace fasthorovod::transport
