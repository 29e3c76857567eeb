// How long a message takes to a rank of another host, measured when all ranks have come: rank 0
// sends probes over the control connections, which the others answer at once.
//
// First small ones: all probed ranks are asked together, and each again when its answer has come,
// until it has been asked kRounds times, or kLongest has passed and it has been asked twice. Then,
// in what is left of that time, a few large ones go to the first of them. So a start becomes longer
// by kLongest and a large message, or by two round trips, and no answer is left on its way. Thread:
// owner (the io_context's).
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/cost_model.h"
#include "core/result.h"
#include "transport/control_links.h"

namespace fasthorovod::transport {

class HopProbe final {
 public:
  static constexpr int kRounds = 8;
  static constexpr int kLeastRounds = 2;  // the first one may have to find the way
  static constexpr int kLargeRounds = 3;
  static constexpr std::size_t kMostRanks = 4;
  static constexpr std::chrono::milliseconds kLongest{3};

  /// Takes what comes over the links from now on until it is destroyed. One rank at least.
  HopProbe(ControlLinks& links, std::span<const int> ranks);
  ~HopProbe();
  HopProbe(const HopProbe&) = delete;
  HopProbe& operator=(const HopProbe&) = delete;

  [[nodiscard]] const bool& over() const { return over_; }

  /// The shortest round trips, of the rank that is furthest, and the rate of the median: the first
  /// bytes may pass faster than a network that is limited lets more of them. While it is not over,
  /// or when a rank left, the error names the rank.
  [[nodiscard]] core::Result<core::HopCosts> costs() const;

 private:
  struct Rank {
    int answers = 0;
    bool waits = false;  // its answer is on its way
    core::TimePoint sent;
    core::Duration shortest = core::Duration::max();
  };

  void take(int rank, std::span<const std::byte> message);
  void take_large();
  void lose(int rank, core::Error error);
  void send(int rank, std::uint32_t padding);
  void go_on();
  [[nodiscard]] bool late() const { return core::Clock::now() - started_ >= kLongest; }

  ControlLinks& links_;
  const int first_;
  const core::TimePoint started_ = core::Clock::now();
  std::map<int, Rank> ranks_;
  core::Status status_;
  int messages_ = 0;                         // small ones, sent and received
  std::chrono::nanoseconds worked_;          // for them; before, by this thread until the start
  bool large_ = false;                       // has begun
  int large_left_ = kLargeRounds;            // to send
  core::Duration handed_over_{};             // what it took to send the last one
  std::vector<core::Duration> on_the_wire_;  // of the large ones that came
  bool over_ = false;
};

}  // namespace fasthorovod::transport
