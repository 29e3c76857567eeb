// How fast a flow drains, from what its owner sees of it: bytes acknowledged by the peer's kernel
// over the time in which there were bytes to acknowledge.
//
// The first 4 ms after a rest do not count: networks that limit a flow let a burst pass. From then
// on each 4 ms, or a little more, are a sample, until the flow is found dry. Nobody saw since when
// it was, so the last interval only says that the flow is at least that fast, which makes no rate
// known. Operations that last a few milliseconds thus teach nothing; nor need they know.
//
// Thread: owner.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace fasthorovod::transport {

class FlowRate final {
 public:
  /// A look: the flow was given `written` bytes so far, of which `waiting` are not acknowledged.
  void observe(core::TimePoint now, std::uint64_t written, std::uint64_t waiting);
  /// Nobody looks, for little was written: the flow counts as dry.
  void rest() { busy_ = false; }
  /// Bytes are given to it; `written` before them.
  void give(core::TimePoint now, std::uint64_t written);

  /// Bytes a second; 0 while nothing is known, else at least kLeast.
  [[nodiscard]] double value() const { return rate_; }
  /// When bytes were last seen on their way; the end of time while they are.
  [[nodiscard]] core::TimePoint last_busy() const {
    return busy_ ? core::TimePoint::max() : last_busy_;
  }

  static constexpr double kLeast = 64 << 10;  // slower is as good as nothing

 private:
  void begin(core::TimePoint now, std::uint64_t drained);
  void take_sample(double rate);

  bool busy_ = false;     // bytes waited at the last look
  bool settled_ = false;  // the first interval is over
  core::TimePoint since_{};
  std::uint64_t drained_then_ = 0;
  core::TimePoint last_busy_{};
  double rate_ = 0;
};

}  // namespace fasthorovod::transport
