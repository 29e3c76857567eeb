#include "transport/local_socket.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/fork_guard.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

// More than one, so that several are seen as such rather than cut off.
constexpr std::size_t kDescriptorsSeen = 8;

struct LocalAddress {
  sockaddr_un system{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&system); }
};

LocalAddress to_system(const std::string& name) {
  LocalAddress address;
  address.system.sun_family = AF_UNIX;
  const std::size_t used = std::min(name.size(), kMaxLocalName);
  std::copy_n(name.begin(), used, address.system.sun_path + 1);  // abstract: a zero byte first
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + used);
  return address;
}

core::Result<FileDescriptor> make_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return core::system_error("making a Unix socket", errno);
  drop_on_fork(socket);
  return socket;
}

std::vector<FileDescriptor> descriptors_in(msghdr& header) {
  std::vector<FileDescriptor> found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      found.emplace_back(fd);
    }
  }
  return found;
}

}  // namespace

core::Result<FileDescriptor> listen_locally(const std::string& name) {
  auto socket = make_socket();
  if (!socket) return socket;
  const LocalAddress address = to_system(name);
  if (::bind(socket->get(), address.get(), address.length) != 0 ||
      ::listen(socket->get(), SOMAXCONN) != 0) {
    return core::system_error("listening at a Unix socket", errno);
  }
  return socket;
}

core::Result<FileDescriptor> dial_locally(const std::string& name) {
  auto socket = make_socket();
  if (!socket) return socket;
  const LocalAddress address = to_system(name);
  if (::connect(socket->get(), address.get(), address.length) == 0) return socket;
  Error error = core::system_error("dialling a Unix socket", errno);
  if (errno == ECONNREFUSED) error.code = ErrorCode::kPeerLost;
  if (errno == EAGAIN || errno == EINTR) error.code = ErrorCode::kUnavailable;
  return error;
}

core::Result<ucred> user_of(int fd) {
  ucred user{};
  socklen_t length = sizeof(user);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0) {
    return core::system_error("asking whose process is at a Unix socket", errno);
  }
  return user;
}

core::Status check_user(const ucred& other, uid_t own) {
  if (other.uid == own) return {};
  return Error{ErrorCode::kAuthentication,
               fmt::format("process {} runs as user {}, this one as user {}; the ranks of one host "
                           "must run as one user",
                           other.pid, other.uid, own)};
}

core::Status send_parcel(int fd, std::span<const std::byte> message, int content) {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &content, sizeof(int));
  ssize_t put = 0;
  do put = ::sendmsg(fd, &header, MSG_NOSIGNAL);
  while (put < 0 && errno == EINTR);
  if (put == static_cast<ssize_t>(message.size())) return {};
  Error error = core::system_error("sending a descriptor", errno);
  if (errno == EPIPE || errno == ECONNRESET) error.code = ErrorCode::kPeerLost;
  return error;
}

core::Result<std::optional<Parcel>> receive_parcel(int fd) {
  Parcel parcel;
  parcel.message.resize(kMaxParcelMessage);
  iovec part{parcel.message.data(), parcel.message.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kDescriptorsSeen * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Parcel>();
  if (got < 0 && errno != ECONNRESET) return core::system_error("receiving a descriptor", errno);
  if (got <= 0) return Error{ErrorCode::kPeerLost, "the other side ended the connection"};
  std::vector<FileDescriptor> descriptors = descriptors_in(header);
  if (descriptors.empty() && (header.msg_flags & MSG_CTRUNC) != 0) {
    return core::system_error("receiving a descriptor", EMFILE);
  }
  if (descriptors.size() != 1 || (header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("a message with {} descriptors came, not a short one with one",
                             descriptors.size())};
  }
  parcel.message.resize(static_cast<std::size_t>(got));
  parcel.content = std::move(descriptors.front());
  drop_on_fork(parcel.content);
  return std::optional<Parcel>(std::move(parcel));
}

}  // namespace fasthorovod::transport
