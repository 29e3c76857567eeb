#include "transport/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace fasthorovod::transport {

core::Result<std::unique_ptr<Poller>> Poller::create(FileDescriptor bell) {
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return core::system_error("creating a lane's epoll", errno);
  if (!bell.valid()) bell = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return core::system_error("creating a lane's eventfd", errno);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, bell.get(), &event) != 0) {
    return core::system_error("watching a lane's eventfd", errno);
  }
  return std::unique_ptr<Poller>(new Poller(std::move(epoll), std::move(bell)));
}

Poller::Poller(FileDescriptor epoll, FileDescriptor bell)
    : epoll_(std::move(epoll)), bell_(std::move(bell)) {}

core::Status Poller::watch(int fd, void* owner, std::uint32_t before, std::uint32_t after) {
  if (before == after) return {};
  epoll_event event{.events = after, .data = {.ptr = owner}};
  const int operation = before == 0 ? EPOLL_CTL_ADD : after == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) != 0) {
    return core::system_error("watching a flow", errno);
  }
  return {};
}

std::span<const epoll_event> Poller::wait(int timeout_ms) {
  const int count =
      ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
  // A signal ends the wait early, which is as good as a time limit.
  auto events = std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
  const auto bell =
      std::ranges::find(events, nullptr, [](const epoll_event& e) { return e.data.ptr; });
  if (bell == events.end()) return events;
  std::uint64_t rings = 0;
  (void)!::read(bell_.get(), &rings, sizeof rings);
  std::swap(*bell, events.back());
  return events.first(events.size() - 1);
}

void Poller::ring() {
  const std::uint64_t one = 1;
  // It fails only when the count is at its maximum, and then the bell is ringing already.
  (void)!::write(bell_.get(), &one, sizeof one);
}

}  // namespace fasthorovod::transport
