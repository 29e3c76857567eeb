#include "test/transport/socket_pair.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

namespace fasthorovod::transport {
namespace {

template <typename T>
void set_option(const FileDescriptor& socket, int option, const T& value) {
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, option, &value, sizeof value), 0);
}

void bound(const FileDescriptor& socket, int buffer_bytes) {
  set_option(socket, SO_RCVTIMEO, timeval{.tv_sec = 20, .tv_usec = 0});
  set_option(socket, SO_SNDTIMEO, timeval{.tv_sec = 20, .tv_usec = 0});
  if (buffer_bytes == 0) return;
  set_option(socket, SO_SNDBUF, buffer_bytes);
  set_option(socket, SO_RCVBUF, buffer_bytes);
}

SocketPair unix_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

SocketPair tcp_pair(int buffer_bytes) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  bound(listener, buffer_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), generic, length), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), generic, &length), 0);
  FileDescriptor near(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  bound(near, buffer_bytes);
  EXPECT_EQ(::connect(near.get(), generic, length), 0);
  FileDescriptor far(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return {std::move(near), std::move(far)};
}

}  // namespace

SocketPair connected_pair(SocketKind kind, int buffer_bytes) {
  auto pair = kind == SocketKind::kUnix ? unix_pair() : tcp_pair(buffer_bytes);
  bound(pair.first, buffer_bytes);
  bound(pair.second, buffer_bytes);
  return pair;
}

bool write_all(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

std::vector<std::byte> read_up_to(const FileDescriptor& socket, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::recv(socket.get(), bytes.data() + done, size - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

void reset(FileDescriptor socket) {
  set_option(socket, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});
  const FileDescriptor closing = std::move(socket);
}

}  // namespace fasthorovod::transport
