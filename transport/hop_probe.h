// How long a message takes to a rank of another host, measured when all ranks have come: rank 0
// sends small probes over the control connections, which the others send back at once.
//
// All probed ranks are asked together, and each again when its echo has come, until it has been
// asked kRounds times or kLongest has passed. So a start becomes longer by a round trip and
// kLongest at most. No echo is left on its way. Thread: owner (the io_context's).
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "transport/control_links.h"

namespace fasthorovod::transport {

class HopProbe final {
 public:
  static constexpr int kRounds = 8;
  static constexpr std::size_t kMostRanks = 4;
  static constexpr std::chrono::milliseconds kLongest{2};

  /// Takes what comes over the links from now on until it is over.
  HopProbe(ControlLinks& links, std::span<const int> ranks);
  ~HopProbe();
  HopProbe(const HopProbe&) = delete;
  HopProbe& operator=(const HopProbe&) = delete;

  [[nodiscard]] const bool& over() const { return over_; }

  /// Once it is over: half of the shortest round trip of the rank that is furthest. Else the error
  /// names a rank that left, or that has not answered.
  [[nodiscard]] core::Result<double> hop_seconds() const;

 private:
  struct Rank {
    int echoes = 0;
    bool waits = false;  // its echo is on its way
    core::TimePoint sent;
    core::Duration shortest = core::Duration::max();
  };

  void take(int rank, std::span<const std::byte> message);
  void send(int rank);
  void look_whether_over();

  ControlLinks& links_;
  const core::TimePoint started_ = core::Clock::now();
  std::map<int, Rank> ranks_;
  core::Status status_;
  bool over_ = false;
};

}  // namespace fasthorovod::transport
