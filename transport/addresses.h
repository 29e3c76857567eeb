// Where this host can be reached, and which host it is.
//
// A host has addresses that lead nowhere (a bridge of a container system, a stale tunnel), so a
// rank lists all that are usable, best first, and whoever dials tries them in order; the handshake
// tells whether the right rank answers. Stateless; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "transport/endpoint.h"

namespace fasthorovod::transport {

/// One address of one interface that is up.
struct LocalAddress {
  std::string interface;
  IpAddress address;
};

core::Result<std::vector<LocalAddress>> local_addresses();

/// The usable ones among `available`: not loopback, link-local IPv6 only when there is nothing
/// else. With a `filter` (FASTHOROVOD_NETWORK_INTERFACE) exactly those that it names: interface
/// names, addresses or networks (10.0.0.0/8), comma separated; loopback only by name. An error when
/// the filter makes no sense, or names nothing that exists: it lists what does.
core::Result<std::vector<IpAddress>> choose_addresses(const std::vector<LocalAddress>& available,
                                                      std::string_view filter);

/// The address this host would use towards `target`; nothing when there is no route.
std::optional<IpAddress> address_towards(const IpAddress& target);

/// The name of the interface that has this address; "" when none has.
std::string interface_of(const IpAddress& address);

/// Puts `first` in front when it is among the addresses.
void prefer(std::vector<IpAddress>& addresses, const IpAddress& first);

/// The addresses of a name or literal, without duplicates; asks the system's resolver, which may
/// take its time.
core::Result<std::vector<IpAddress>> resolve(const std::string& host);

/// Equal exactly for processes that reach each other through loopback: boot id and network
/// namespace.
core::Result<std::string> real_host_identity();

/// The host name, for messages.
std::string local_host_name();

}  // namespace fasthorovod::transport
