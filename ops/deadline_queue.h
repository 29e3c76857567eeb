// What is to be done when a time limit passes. One timer serves all limits: its owner is asked to
// come back at the earliest.
//
// Thread: any; a mutex guards the queue. Functions run on the thread that calls expire(), without
// the mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/clock.h"

namespace fasthorovod::ops {

class DeadlineQueue final {
 public:
  using Token = std::pair<core::TimePoint, std::uint64_t>;

  /// `arm` asks for a call of expire() at that time; called without the mutex held.
  explicit DeadlineQueue(std::function<void(core::TimePoint)> arm) : arm_(std::move(arm)) {}

  Token add(core::TimePoint when, std::function<void()> function);
  void remove(const Token& token);

  /// Runs what is due.
  void expire(core::TimePoint now);

 private:
  std::optional<core::TimePoint> next_to_ask();

  const std::function<void(core::TimePoint)> arm_;
  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::map<Token, std::function<void()>> waiting_;
  std::optional<core::TimePoint> asked_;
};

}  // namespace fasthorovod::ops
