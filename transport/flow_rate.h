// How fast a flow drains, from what its owner sees of it: bytes acknowledged by the peer's kernel
// over the time in which there were bytes to acknowledge.
//
// An interval begins when bytes are seen to wait and counts once it has lasted 4 ms. When the flow
// is then found dry, nobody saw since when: the interval only says that the flow is at least that
// fast, which counts from 16 KiB on. Time without bytes says nothing.
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

  bool busy_ = false;  // bytes waited at the last look
  core::TimePoint since_{};
  std::uint64_t drained_then_ = 0;
  core::TimePoint last_busy_{};
  double rate_ = 0;
};

}  // namespace fasthorovod::transport
