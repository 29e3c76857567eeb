#include "transport/listening_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/member.h"

namespace fasthorovod::transport {
namespace {

// Names and addresses that lead to the same host from everywhere: all ranks sit there.
bool is_loopback_for_all(const std::string& host) {
  return host == "localhost" || parse_ip(host).value_or(IpAddress{}).is_loopback();
}

core::Result<std::vector<IpAddress>> usable_addresses(std::string_view filter) {
  auto available = local_addresses();
  if (!available) return std::move(available).error();
  return choose_addresses(*available, filter);
}

void add(ListeningPlaces& places, const std::vector<IpAddress>& addresses, std::uint16_t port) {
  for (const IpAddress& address : addresses) {
    const Endpoint endpoint{address, port};
    if (std::ranges::find(places.wanted, endpoint) == places.wanted.end())
      places.wanted.push_back(endpoint);
  }
  if (places.wanted.size() > kMaxEndpoints) places.wanted.resize(kMaxEndpoints);
}

core::Error cannot_listen(const ListeningPlaces& places, const core::Error& last) {
  if (places.meeting_point.empty())
    return core::Error(last).with_context("no address to listen at");
  return core::Error(last).with_context(
      fmt::format("rank 0 cannot listen at its meeting point {} (FASTHOROVOD_RENDEZVOUS)",
                  places.meeting_point));
}

}  // namespace

core::Result<ListeningPlaces> places_near(const std::string& meeting_point,
                                          const IpAddress& reached, std::string_view filter) {
  auto host = parse_host_port(meeting_point);
  if (!host) return std::move(host).error();
  ListeningPlaces places;
  if (filter.empty() && reached.is_loopback() && is_loopback_for_all(host->host)) {
    add(places, {reached}, 0);
    return places;
  }
  auto addresses = usable_addresses(filter);
  if (!addresses) return std::move(addresses).error();
  if (const auto towards = address_towards(reached)) prefer(*addresses, *towards);
  add(places, *addresses, 0);
  // A name can mean loopback here and this host elsewhere; and a host may have nothing but
  // loopback.
  if (filter.empty() && (reached.is_loopback() || places.wanted.empty())) {
    add(places, {reached.is_loopback() ? reached : *parse_ip("127.0.0.1")}, 0);
  }
  return places;
}

core::Result<ListeningPlaces> places_of_meeting_point(const std::string& meeting_point,
                                                      std::string_view filter) {
  auto host = parse_host_port(meeting_point);
  if (!host) return std::move(host).error().with_context("FASTHOROVOD_RENDEZVOUS");
  auto addresses = resolve(host->host);
  if (!addresses) return std::move(addresses).error().with_context("FASTHOROVOD_RENDEZVOUS");
  // Rank 0 listens where it was told to; still, a filter that matches nothing is a mistake on every
  // rank.
  if (!filter.empty()) {
    if (auto usable = usable_addresses(filter); !usable) return std::move(usable).error();
  }
  ListeningPlaces places;
  places.meeting_point = meeting_point;
  add(places, *addresses, host->port);
  if (std::ranges::any_of(*addresses, &IpAddress::is_unspecified)) {
    return core::Error{
        core::ErrorCode::kInvalidArgument,
        fmt::format("FASTHOROVOD_RENDEZVOUS: {} is every address and none; name one of this host",
                    host->host)};
  }
  // Many hosts call themselves 127.0.1.1, while the others know them by a real address.
  if (std::ranges::all_of(*addresses, &IpAddress::is_loopback) &&
      !is_loopback_for_all(host->host)) {
    auto usable = usable_addresses(filter);
    if (!usable) return std::move(usable).error();
    add(places, *usable, host->port);
  }
  return places;
}

core::Result<std::vector<Endpoint>> listen_at_places(Listener& listener,
                                                     const ListeningPlaces& places) {
  std::vector<Endpoint> bound;
  core::Error last{core::ErrorCode::kUnavailable, "this host has no usable address"};
  for (const Endpoint& endpoint : places.wanted) {
    auto one = listener.add(endpoint);
    if (one) {
      one->address.scope = 0;
      bound.push_back(*one);
      continue;
    }
    last = std::move(one).error();
    if (endpoint.port != 0 && last.code == core::ErrorCode::kUnavailable)
      return cannot_listen(places, last);
  }
  if (bound.empty()) return cannot_listen(places, last);
  return bound;
}

core::Result<std::vector<Endpoint>> endpoints_of(const std::string& meeting_point) {
  auto host = parse_host_port(meeting_point);
  if (!host) return std::move(host).error();
  auto addresses = resolve(host->host);
  if (!addresses) return std::move(addresses).error();
  std::vector<Endpoint> endpoints;
  for (const IpAddress& address : *addresses) endpoints.push_back({address, host->port});
  return endpoints;
}

std::string join_endpoints(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints)
    text += (text.empty() ? "" : ",") + endpoint.to_string();
  return text;
}

core::Result<std::vector<Endpoint>> split_endpoints(std::string_view text,
                                                    const std::vector<std::uint32_t>& scopes) {
  Member member;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    auto one = parse_host_port(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const auto address = one ? parse_ip(one->host) : std::nullopt;
    if (!address)
      return core::Error{core::ErrorCode::kProtocol, "the store holds no endpoints of rank 0"};
    member.endpoints.push_back({*address, one->port});
  }
  return dialling_order(member, member.real_host, scopes);
}

std::vector<std::uint32_t> link_local_scopes() {
  std::vector<std::uint32_t> scopes;
  const auto available = local_addresses();
  if (!available) return scopes;
  for (const LocalAddress& each : *available) {
    if (each.address.is_link_local()) scopes.push_back(each.address.scope);
  }
  return scopes;
}

}  // namespace fasthorovod::transport
