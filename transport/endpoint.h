// IP addresses and endpoints as values, without sockets. Immutable.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fasthorovod::transport {

/// An IPv4 or IPv6 address. The scope matters for link-local IPv6 alone: the index of the interface
/// it is on.
struct IpAddress {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // IPv4 uses the first four
  std::uint32_t scope = 0;

  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const;  // IPv6 only
  [[nodiscard]] bool is_unspecified() const;
  [[nodiscard]] std::string to_string() const;  // with %scope where there is one

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

/// A literal address, without brackets; nothing when it is none. A scope after '%' is a name or an
/// index.
std::optional<IpAddress> parse_ip(std::string_view text);

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;

  [[nodiscard]] std::string to_string() const;  // "1.2.3.4:5" or "[::1]:5"

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// The system's form of an endpoint.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress to_system(const Endpoint& endpoint);
/// Nothing for other families. IPv4 written as IPv6 (::ffff:a.b.c.d) becomes IPv4.
std::optional<Endpoint> from_system(const sockaddr* address);

/// A meeting point as a user writes it.
struct HostPort {
  std::string host;  // a name or a literal address, without brackets
  std::uint16_t port = 0;
};

/// Parses "host:port" or "[v6]:port". A bare IPv6 literal is refused with the hint about brackets.
core::Result<HostPort> parse_host_port(std::string_view text);

}  // namespace fasthorovod::transport
