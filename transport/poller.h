// What a lane sleeps on: its sockets (epoll, level-triggered) and a bell (eventfd) that other
// threads ring.
//
// Thread: owner; ring() from any thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

class Poller final {
 public:
  /// With an eventfd of its own as the bell, or the one given.
  static core::Result<std::unique_ptr<Poller>> create(FileDescriptor bell = {});

  /// Changes what is watched on `fd` from `before` to `after` (EPOLLIN, EPOLLOUT); 0 means not
  /// watched at all, so that not even an error on it wakes the lane. Events on it come back with
  /// `owner`.
  core::Status watch(int fd, void* owner, std::uint32_t before, std::uint32_t after);

  /// Sleeps at most timeout_ms (-1: without limit). The events are valid until the next call; those
  /// of the bell are not among them.
  std::span<const epoll_event> wait(int timeout_ms);

  void ring();
  /// For others to ring.
  [[nodiscard]] int bell() const { return bell_.get(); }

 private:
  Poller(FileDescriptor epoll, FileDescriptor bell);

  FileDescriptor epoll_;
  FileDescriptor bell_;
  std::array<epoll_event, 64> events_{};
};

}  // namespace fasthorovod::transport
