#include "transport/closing.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "core/clock.h"

namespace fasthorovod::transport {
namespace {

constexpr int kAskAgainMs = 2;  // acknowledgements raise no event, so they are asked for

// True when nothing of ours can get lost any more.
bool delivered(const FileDescriptor& socket, std::vector<std::byte>& discard) {
  const ssize_t count = ::recv(socket.get(), discard.data(), discard.size(), MSG_DONTWAIT);
  if (count == 0) return true;
  if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return true;
  int unacknowledged = 0;
  return ::ioctl(socket.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

void wait_for_bytes(const std::vector<FileDescriptor>& sockets) {
  std::vector<pollfd> watched;
  watched.reserve(sockets.size());
  for (const auto& socket : sockets)
    watched.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
  ::poll(watched.data(), watched.size(), kAskAgainMs);
}

}  // namespace

void close_in_order(std::vector<FileDescriptor> sockets, std::chrono::milliseconds limit) {
  for (const auto& socket : sockets) ::shutdown(socket.get(), SHUT_WR);
  std::vector<std::byte> discard(64 << 10);
  const auto deadline = core::Clock::now() + limit;
  while (true) {
    std::erase_if(sockets, [&](const auto& socket) { return delivered(socket, discard); });
    if (sockets.empty() || core::Clock::now() >= deadline) return;
    wait_for_bytes(sockets);
  }
}

}  // namespace fasthorovod::transport
