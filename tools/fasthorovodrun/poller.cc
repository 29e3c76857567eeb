#include "tools/fasthorovodrun/poller.h"

#include <sys/epoll.h>

#include <cerrno>

namespace fasthorovod::tools {
namespace {

constexpr unsigned kIndexBits = 48;

}  // namespace

core::Result<Poller> Poller::create() {
  transport::FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return core::system_error("cannot wait for events", errno);
  return Poller(std::move(epoll));
}

bool Poller::watch(int fd, Event event) {
  epoll_event request{};
  request.events = event.source == Source::kSink ? EPOLLOUT : EPOLLIN;
  request.data.u64 = (static_cast<std::uint64_t>(event.source) << kIndexBits) | event.index;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &request) != 0) return false;
  ++watched_;
  return true;
}

void Poller::forget(int fd) {
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0) --watched_;
}

std::vector<Event> Poller::wait(int timeout_ms) {
  // Room for all at once: a second call would put those that were told behind those that were not.
  std::vector<epoll_event> ready(watched_ + 1);
  const int count =
      epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout_ms);
  std::vector<Event> events;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
    events.push_back({static_cast<Source>(data >> kIndexBits),
                      static_cast<std::size_t>(data & ((1ULL << kIndexBits) - 1))});
  }
  return events;
}

}  // namespace fasthorovod::tools
