#include "transport/socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "transport/fork_guard.h"

namespace fasthorovod::transport {
namespace {

constexpr int kSilenceMs =
    10'000;  // unacknowledged bytes, or unanswered probes, for so long: the peer is dead
constexpr int kProbeAfterSeconds = 2;  // of silence
constexpr int kProbeEverySeconds = 2;
constexpr int kProbes = 4;

core::Result<FileDescriptor> make_socket(const Endpoint& endpoint) {
  FileDescriptor socket(::socket(endpoint.address.v6 ? AF_INET6 : AF_INET,
                                 SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return core::system_error("making a socket", errno);
  drop_on_fork(socket);
  return socket;
}

bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

core::Status set_connection_options(int fd) {
  const bool all = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
                   set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
                   set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kProbeAfterSeconds) &&
                   set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeEverySeconds) &&
                   set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes) &&
                   set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
  if (!all) return core::system_error("setting the options of a connection", errno);
  return {};
}

// What accept reports about a connection that ended before it was taken; the listener itself is
// well.
bool concerns_one_connection(int error) {
  return error == ECONNABORTED || error == EPROTO || error == EINTR || error == ENETDOWN ||
         error == ENETUNREACH || error == EHOSTUNREACH || error == EHOSTDOWN || error == ETIMEDOUT;
}

std::optional<Endpoint> name_of(int fd, decltype(&::getsockname) which) {
  SocketAddress address;
  if (which(fd, address.get(), &address.length) != 0) return std::nullopt;
  return from_system(address.get());
}

}  // namespace

core::Result<FileDescriptor> listen_at(const Endpoint& endpoint, int backlog) {
  auto socket = make_socket(endpoint);
  if (!socket) return socket;
  const int fd = socket->get();
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (endpoint.address.v6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  const SocketAddress address = to_system(endpoint);
  if (::bind(fd, address.get(), address.length) != 0 || ::listen(fd, backlog) != 0) {
    const int why = errno;
    auto error = core::system_error(fmt::format("listening at {}", endpoint.to_string()), why);
    if (why == EADDRINUSE) error.code = core::ErrorCode::kUnavailable;
    return error;
  }
  return socket;
}

core::Result<FileDescriptor> accept_one(int listener) {
  for (;;) {
    FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      drop_on_fork(socket);
      // A connection that is gone already refuses options; reading from it tells.
      (void)set_connection_options(socket.get());
      return socket;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return FileDescriptor();
    if (!concerns_one_connection(errno)) return core::system_error("accepting a connection", errno);
  }
}

core::Result<FileDescriptor> begin_connect(const Endpoint& endpoint) {
  auto socket = make_socket(endpoint);
  if (!socket) return socket;
  if (auto status = set_connection_options(socket->get()); !status)
    return std::move(status).error();
  const SocketAddress address = to_system(endpoint);
  if (::connect(socket->get(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
    return core::system_error(fmt::format("connecting to {}", endpoint.to_string()), errno);
  }
  return socket;
}

core::Status finish_connect(int fd, const Endpoint& endpoint) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  // Dialling a free port of the own host can meet itself, which would also take the port from its
  // owner.
  if (error == 0 && local_endpoint(fd) == remote_endpoint(fd)) error = ECONNREFUSED;
  if (error != 0)
    return core::system_error(fmt::format("connecting to {}", endpoint.to_string()), error);
  return {};
}

core::Status set_pacing(int fd, core::BytesPerSecond rate) {
  if (::setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) == 0) return {};
  // Kernels before 4.20 know 32 bits only.
  const auto narrow = static_cast<std::uint32_t>(
      std::min<core::BytesPerSecond>(rate, std::numeric_limits<std::uint32_t>::max() - 1));
  if (::setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &narrow, sizeof(narrow)) == 0) return {};
  return core::system_error("pacing a flow", errno);
}

core::Status set_silence_limit(int fd, std::chrono::milliseconds limit) {
  if (set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limit.count()))) return {};
  return core::system_error("setting the silence limit of a connection", errno);
}

std::chrono::milliseconds unanswered_for(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  const bool waits = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
  return std::chrono::milliseconds(waits ? info.tcpi_last_ack_recv : 0);
}

std::optional<Endpoint> local_endpoint(int fd) { return name_of(fd, &::getsockname); }
std::optional<Endpoint> remote_endpoint(int fd) { return name_of(fd, &::getpeername); }

}  // namespace fasthorovod::transport
