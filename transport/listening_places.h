// Where a rank listens: which addresses, and at which ports. Pure decisions over addresses.h, then
// the binding. Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "transport/addresses.h"
#include "transport/endpoint.h"
#include "transport/listener.h"

namespace fasthorovod::transport {

struct ListeningPlaces {
  std::vector<Endpoint> wanted;  // port 0: any; one that can be had is enough
  std::string meeting_point;     // for messages; "" where no particular port is wanted
};

/// For a rank that met the others at `meeting_point` (as the user wrote it), which it reached at
/// `reached`: every usable address at any port, best first. When everybody meets on loopback, that
/// one alone.
core::Result<ListeningPlaces> places_near(const std::string& meeting_point,
                                          const IpAddress& reached, std::string_view filter);

/// For rank 0 when it is the meeting point itself: exactly there.
core::Result<ListeningPlaces> places_of_meeting_point(const std::string& meeting_point,
                                                      std::string_view filter);

/// Listens; says where, in order, without scopes.
core::Result<std::vector<Endpoint>> listen_at_places(Listener& listener,
                                                     const ListeningPlaces& places);

/// What a meeting point resolves to, now.
core::Result<std::vector<Endpoint>> endpoints_of(const std::string& meeting_point);

/// Endpoints as the text under which rank 0 stores them. Link-local ones come back once for each
/// scope.
std::string join_endpoints(const std::vector<Endpoint>& endpoints);
core::Result<std::vector<Endpoint>> split_endpoints(std::string_view text,
                                                    const std::vector<std::uint32_t>& scopes);

/// The interfaces of this host that have a link-local IPv6 address.
std::vector<std::uint32_t> link_local_scopes();

}  // namespace fasthorovod::transport
