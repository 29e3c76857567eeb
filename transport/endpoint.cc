#include "transport/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace fasthorovod::transport {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> parse_scope(const std::string& text) {
  if (const auto index = parse_number<std::uint32_t>(text)) return index;
  const unsigned index = ::if_nametoindex(text.c_str());
  return index == 0 ? std::nullopt : std::optional<std::uint32_t>(index);
}

core::Error bad_host_port(std::string_view text, std::string_view why) {
  return {core::ErrorCode::kInvalidArgument, fmt::format("'{}' is not host:port: {}", text, why)};
}

}  // namespace

bool IpAddress::is_loopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 &&
         std::all_of(bytes.begin(), bytes.end() - 1, [](auto b) { return b == 0; });
}

bool IpAddress::is_link_local() const {
  return v6 && bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80;
}

bool IpAddress::is_unspecified() const {
  return std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0; });
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
  std::string result = text.data();
  if (v6 && scope != 0) result += fmt::format("%{}", scope);
  return result;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  IpAddress address;
  const std::size_t percent = text.find('%');
  const std::string literal(text.substr(0, percent));
  if (::inet_pton(AF_INET, literal.c_str(), address.bytes.data()) == 1) {
    return percent == std::string_view::npos ? std::optional(address) : std::nullopt;
  }
  address.v6 = true;
  if (::inet_pton(AF_INET6, literal.c_str(), address.bytes.data()) != 1) return std::nullopt;
  if (percent != std::string_view::npos) {
    const auto scope = parse_scope(std::string(text.substr(percent + 1)));
    if (!scope) return std::nullopt;
    address.scope = *scope;
  }
  return address;
}

std::string Endpoint::to_string() const {
  const std::string text = address.to_string();
  return address.v6 ? fmt::format("[{}]:{}", text, port) : fmt::format("{}:{}", text, port);
}

SocketAddress to_system(const Endpoint& endpoint) {
  SocketAddress result;
  if (endpoint.address.v6) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    v6.sin6_scope_id = endpoint.address.scope;
    std::memcpy(&v6.sin6_addr, endpoint.address.bytes.data(), 16);
    std::memcpy(&result.storage, &v6, sizeof(v6));
    result.length = sizeof(v6);
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&v4.sin_addr, endpoint.address.bytes.data(), 4);
    std::memcpy(&result.storage, &v4, sizeof(v4));
    result.length = sizeof(v4);
  }
  return result;
}

std::optional<Endpoint> from_system(const sockaddr* address) {
  Endpoint endpoint;
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof(v4));
    endpoint.port = ntohs(v4.sin_port);
    std::memcpy(endpoint.address.bytes.data(), &v4.sin_addr, 4);
    return endpoint;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof(v6));
  endpoint.port = ntohs(v6.sin6_port);
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  if (std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin())) {
    std::copy(bytes.begin() + 12, bytes.end(), endpoint.address.bytes.begin());
    return endpoint;
  }
  endpoint.address = {true, bytes, 0};
  if (endpoint.address.is_link_local()) endpoint.address.scope = v6.sin6_scope_id;
  return endpoint;
}

core::Result<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (parse_ip(text).value_or(IpAddress{}).v6) {
    return bad_host_port(text, fmt::format("write an IPv6 address in brackets, [{}]:port", text));
  }
  if (colon == std::string_view::npos) return bad_host_port(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!parse_ip(host).value_or(IpAddress{}).v6) {
      return bad_host_port(text, "what is in brackets is not an IPv6 address");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return bad_host_port(text, fmt::format("write an IPv6 address in brackets, [{}]:{}", host,
                                           text.substr(colon + 1)));
  }
  if (host.empty()) return bad_host_port(text, "the host is missing");
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return bad_host_port(text, "the port is a number from 1 to 65535");
  return HostPort{std::string(host), *port};
}

}  // namespace fasthorovod::transport
