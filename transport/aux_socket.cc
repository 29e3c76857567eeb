#include "transport/aux_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock.h"

namespace fasthorovod::transport {
namespace {

struct alignas(cmsghdr) Ancillary {
  std::array<char, CMSG_SPACE(sizeof(int) * AuxSocket::kMostDescriptors)> bytes;
};

bool wait_readable(int fd, std::optional<std::chrono::milliseconds> limit) {
  const auto deadline = core::Clock::now() + limit.value_or(std::chrono::milliseconds(0));
  while (true) {
    int timeout = -1;
    if (limit) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - core::Clock::now());
      timeout = static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
    }
    pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&watched, 1, timeout);
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

std::vector<FileDescriptor> descriptors_of(msghdr& message) {
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

core::Result<std::pair<FileDescriptor, FileDescriptor>> AuxSocket::pair() {
  std::array ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return core::system_error("creating the sockets of an auxiliary", errno);
  }
  return std::pair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

core::Status AuxSocket::send(const AuxMessage& message, std::span<const int> descriptors) const {
  iovec part{.iov_base = const_cast<AuxMessage*>(&message), .iov_len = sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Ancillary ancillary{};
  if (!descriptors.empty()) {
    header.msg_control = ancillary.bytes.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return core::system_error("telling an auxiliary", errno);
  }
  return {};
}

core::Result<std::optional<AuxReceived>> AuxSocket::receive(
    std::optional<std::chrono::milliseconds> limit) const {
  if (!wait_readable(socket_.get(), limit)) return std::optional<AuxReceived>();
  AuxReceived received;
  iovec part{.iov_base = &received.message, .iov_len = sizeof received.message};
  Ancillary ancillary{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = ancillary.bytes.data();
  header.msg_controllen = ancillary.bytes.size();
  ssize_t count = -1;
  do {
    count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count == 0 || (count < 0 && errno == ECONNRESET)) return std::optional<AuxReceived>();
  if (count < 0) return core::system_error("hearing an auxiliary", errno);
  received.descriptors = descriptors_of(header);
  if (count != sizeof received.message) {
    return core::Error{core::ErrorCode::kProtocol,
                       "a message between a rank and its auxiliary "
                       "has another size"};
  }
  return std::optional(std::move(received));
}

}  // namespace fasthorovod::transport
