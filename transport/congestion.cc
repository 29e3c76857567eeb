#include "transport/congestion.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>

#include "transport/file_descriptor.h"

namespace fasthorovod::transport {
namespace {

// What a file of /proc/sys/net/ipv4 says, in one line.
std::string names_in(const char* file) {
  std::ifstream stream(std::string("/proc/sys/net/ipv4/") + file);
  std::string line;
  std::getline(stream, line);
  return line;
}

int try_on(int fd, const std::string& name) {
  const auto length = static_cast<socklen_t>(name.size());
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), length) == 0 ? 0 : errno;
}

core::Error refused(const std::string& name, int why) {
  const bool forbidden = why == EPERM;
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("FASTHOROVOD_TCP_CONGESTION=\"{}\" is not allowed: {} {}", name,
                      forbidden ? "this user may choose" : "the system has",
                      names_in(forbidden ? "tcp_allowed_congestion_control"
                                         : "tcp_available_congestion_control"))};
}

}  // namespace

core::Status set_congestion(int fd, const std::string& name) {
  const int why = try_on(fd, name);
  if (why == 0) return {};
  return core::system_error(fmt::format("using the congestion control {}", name), why);
}

core::Status check_congestion(const std::string& name) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return core::system_error("making a socket", errno);
  const int why = try_on(socket.get(), name);
  if (why == 0) return {};
  if (why == ENOENT || why == EPERM) return refused(name, why);
  return core::system_error(fmt::format("using the congestion control {}", name), why);
}

}  // namespace fasthorovod::transport
