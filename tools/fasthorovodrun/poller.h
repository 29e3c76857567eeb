// Waiting for descriptors. Events come in the order in which they happened: of two workers that end
// while nobody looks, the one that ended first is told first. Thread: owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

/// What a descriptor means to its owner.
enum class Source : std::uint8_t { kSignal, kExit, kOutput, kSink };

struct Event {
  Source source = Source::kSignal;
  std::size_t index = 0;
};

class Poller final {
 public:
  static core::Result<Poller> create();

  /// Watches for something to read or, for a sink, for room to write. False when the descriptor
  /// cannot be watched.
  bool watch(int fd, Event event);
  void forget(int fd);
  /// Waits at most `timeout_ms`, for ever when that is negative.
  std::vector<Event> wait(int timeout_ms);

 private:
  explicit Poller(transport::FileDescriptor epoll) : epoll_(std::move(epoll)) {}

  transport::FileDescriptor epoll_;
  std::size_t watched_ = 0;
};

}  // namespace fasthorovod::tools
