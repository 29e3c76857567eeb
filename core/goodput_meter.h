// What several flows to one peer carry together while the network is the limit: the sum of their
// rates, each from one moment at which it took a chunk to another such moment. There the flow holds
// as many unsent bytes as the time before, so what was acknowledged between them is what it
// carried.
//
// A window begins some milliseconds after there is work, for networks let a burst pass, and ends
// when there is none, or is long enough to be a sample; then the next one follows at once. Flows
// that have run out of bytes when they take a chunk are not limited by the network: where that
// happens often, there is no sample.
//
// Pure; the caller tells the time. Thread: owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/clock.h"

namespace fasthorovod::core {

class GoodputMeter final {
 public:
  /// Begins anew, with so many flows.
  void begin(std::size_t flows);

  /// A flow takes a chunk: `drained` of the bytes that it was given so far are acknowledged.
  /// `dry`: it had none left to send. A sample, in bytes a second, when one is complete.
  std::optional<double> look(std::size_t flow, TimePoint now, std::uint64_t drained, bool dry);

  /// There is no work. What was seen is a sample if it was long enough.
  std::optional<double> rest(TimePoint now);

  /// In most of the last window's looks flows had run out of bytes.
  [[nodiscard]] bool waits_for_work() const { return waits_for_work_; }

 private:
  struct Mark {
    TimePoint first_at{};
    TimePoint last_at{};
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    int looks = 0;
  };

  [[nodiscard]] bool is_complete(TimePoint now) const;
  std::optional<double> sample();
  [[nodiscard]] double sum() const;

  std::vector<Mark> marks_;  // of each flow
  std::optional<TimePoint> work_since_;
  TimePoint window_since_{};
  int looks_ = 0;  // of this window
  int dry_looks_ = 0;
  bool waits_for_work_ = false;
};

}  // namespace fasthorovod::core
