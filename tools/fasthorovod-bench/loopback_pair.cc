#include "tools/fasthorovod-bench/loopback_pair.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "transport/endpoint.h"
#include "transport/socket.h"

namespace fasthorovod::tools {
namespace {

using transport::FileDescriptor;

constexpr int kLimitMs = 5000;
// Every kernel has it, and it paces nothing: what is measured is work, not waiting.
constexpr std::string_view kCongestion = "reno";

core::Error failed(std::string_view why) {
  return {core::ErrorCode::kUnavailable, "a connection inside this host: " + std::string(why)};
}

bool becomes(int fd, short event) {
  pollfd watched{.fd = fd, .events = event, .revents = 0};
  return ::poll(&watched, 1, kLimitMs) == 1;
}

}  // namespace

core::Result<std::pair<FileDescriptor, FileDescriptor>> loopback_pair() {
  auto listener = transport::listen_at({*transport::parse_ip("127.0.0.1"), 0}, 1);
  if (!listener) return std::move(listener).error();
  const auto where = transport::local_endpoint(listener->get());
  if (!where) return failed("no address");
  auto near = transport::begin_connect(*where);
  if (!near) return std::move(near).error();
  if (!becomes(near->get(), POLLOUT) || !becomes(listener->get(), POLLIN)) return failed("no way");
  if (auto connected = transport::finish_connect(near->get(), *where); !connected) {
    return std::move(connected).error();
  }
  auto far = transport::accept_one(listener->get());
  if (!far) return std::move(far).error();
  if (!far->valid()) return failed("nobody came");
  for (const FileDescriptor* end : {&*near, &*far}) {
    if (::setsockopt(end->get(), IPPROTO_TCP, TCP_CONGESTION, kCongestion.data(),
                     kCongestion.size()) != 0) {
      return core::system_error("choosing reno", errno);
    }
  }
  return std::pair(std::move(*near), std::move(*far));
}

}  // namespace fasthorovod::tools
