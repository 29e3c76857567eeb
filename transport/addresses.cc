#include "transport/addresses.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "transport/socket.h"

namespace fasthorovod::transport {
namespace {

core::Error bad_filter(std::string_view item, std::string_view why) {
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("FASTHOROVOD_NETWORK_INTERFACE: '{}' {}", item, why)};
}

std::string list(const std::vector<LocalAddress>& available) {
  std::string text;
  for (const LocalAddress& each : available) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each.interface,
                        each.address.to_string());
  }
  return text.empty() ? "nothing" : text;
}

bool same_network(const IpAddress& a, const IpAddress& b, unsigned bits) {
  if (a.v6 != b.v6) return false;
  for (std::size_t i = 0; bits > 0; ++i, bits -= std::min(bits, 8U)) {
    const unsigned mask = bits >= 8 ? 0xFFU : 0xFF00U >> bits;
    if (((a.bytes[i] ^ b.bytes[i]) & mask & 0xFFU) != 0) return false;
  }
  return true;
}

// One item of the filter: a network, an address or an interface name.
struct Matcher {
  std::optional<IpAddress> network;
  unsigned bits = 0;
  std::string interface;

  [[nodiscard]] bool matches(const LocalAddress& candidate) const {
    if (network) return same_network(candidate.address, *network, bits);
    return candidate.interface == interface;
  }
};

core::Result<Matcher> parse_matcher(std::string_view item) {
  const std::size_t slash = item.find('/');
  if (item.starts_with('^')) {
    return bad_filter(item,
                      "excludes an interface, which is not supported: name the interfaces to use");
  }
  Matcher matcher;
  matcher.network = parse_ip(item.substr(0, slash));
  const unsigned full = matcher.network && matcher.network->v6 ? 128 : 32;
  matcher.bits = full;
  if (slash == std::string_view::npos) {
    if (!matcher.network) matcher.interface = item;
    return matcher;
  }
  const std::string_view digits = item.substr(slash + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), matcher.bits);
  if (!matcher.network || error != std::errc{} || end != digits.data() + digits.size() ||
      matcher.bits > full) {
    return bad_filter(item, "is not a network such as 10.0.0.0/8");
  }
  return matcher;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

void add_unique(std::vector<IpAddress>& addresses, const IpAddress& address) {
  if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
}

// Global addresses, or link-local IPv6 when there is nothing else.
std::vector<IpAddress> usable(const std::vector<LocalAddress>& available) {
  std::vector<IpAddress> global;
  std::vector<IpAddress> link_local;
  for (const LocalAddress& each : available) {
    if (each.address.is_loopback()) continue;
    add_unique(each.address.is_link_local() ? link_local : global, each.address);
  }
  return global.empty() ? link_local : global;
}

core::Error unresolved(const std::string& host, int code) {
  const std::string why =
      code == EAI_SYSTEM ? core::system_error("", errno).message : ::gai_strerror(code);
  return {core::ErrorCode::kUnavailable, fmt::format("looking up the host '{}': {}", host, why)};
}

}  // namespace

core::Result<std::vector<LocalAddress>> local_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return core::system_error("listing the network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<LocalAddress> result;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_UP) == 0) continue;
    if (const auto endpoint = from_system(each->ifa_addr))
      result.push_back({each->ifa_name, endpoint->address});
  }
  return result;
}

core::Result<std::vector<IpAddress>> choose_addresses(const std::vector<LocalAddress>& available,
                                                      std::string_view filter) {
  if (trim(filter).empty()) return usable(available);
  std::vector<IpAddress> chosen;
  for (std::string_view rest = filter; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trim(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (item.empty()) continue;
    auto matcher = parse_matcher(item);
    if (!matcher) return std::move(matcher).error();
    for (const LocalAddress& each : available) {
      if (matcher->matches(each)) add_unique(chosen, each.address);
    }
  }
  // An interface brings its link-local address along; it helps only where there is no other.
  const auto is_link_local = [](const IpAddress& address) { return address.is_link_local(); };
  if (!std::ranges::all_of(chosen, is_link_local)) std::erase_if(chosen, is_link_local);
  if (chosen.empty())
    return bad_filter(
        filter, fmt::format("matches no address of this host, which has {}", list(available)));
  return chosen;
}

std::optional<IpAddress> address_towards(const IpAddress& target) {
  // Connecting a datagram socket sends nothing; it asks the routing table.
  const SocketAddress to = to_system({target, 9});
  const FileDescriptor probe(::socket(to.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid() || ::connect(probe.get(), to.get(), to.length) != 0) return std::nullopt;
  const auto local = local_endpoint(probe.get());
  return local ? std::optional(local->address) : std::nullopt;
}

std::string interface_of(const IpAddress& address) {
  const auto available = local_addresses();
  if (!available) return "";
  const auto found = std::ranges::find_if(*available, [&address](const LocalAddress& each) {
    IpAddress plain = each.address;
    plain.scope = address.scope;  // listening places have none
    return plain == address;
  });
  return found == available->end() ? "" : found->interface;
}

void prefer(std::vector<IpAddress>& addresses, const IpAddress& first) {
  const auto found = std::ranges::find(addresses, first);
  if (found != addresses.end()) std::rotate(addresses.begin(), found, found + 1);
}

core::Result<std::vector<IpAddress>> resolve(const std::string& host) {
  if (const auto literal = parse_ip(host)) return std::vector<IpAddress>{*literal};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &first); code != 0)
    return unresolved(host, code);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  std::vector<IpAddress> result;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    if (const auto endpoint = from_system(each->ai_addr)) add_unique(result, endpoint->address);
  }
  if (result.empty()) return unresolved(host, EAI_NONAME);
  return result;
}

core::Result<std::string> real_host_identity() {
  constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(kBootId, "re"),
                                                             &std::fclose);
  std::array<char, 64> boot{};
  if (!file || std::fgets(boot.data(), static_cast<int>(boot.size()), file.get()) == nullptr) {
    return core::system_error(fmt::format("reading {}", kBootId), errno);
  }
  struct stat network {};
  if (::stat("/proc/self/ns/net", &network) != 0)
    return core::system_error("reading /proc/self/ns/net", errno);
  std::string identity = boot.data();
  while (!identity.empty() && identity.back() == '\n') identity.pop_back();
  return fmt::format("{}/{}", identity, network.st_ino);
}

std::string local_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unnamed";
  return name.data();
}

}  // namespace fasthorovod::transport
