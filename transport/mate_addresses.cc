#include "transport/mate_addresses.h"

#include <fmt/format.h>

#include <map>

namespace fasthorovod::transport {
namespace {

// For each member the first one of the same host.
std::vector<int> first_of_host(std::span<const Member> members) {
  std::map<std::string, int> first;
  std::vector<int> result;
  for (const Member& member : members) {
    const auto rank = static_cast<int>(result.size());
    result.push_back(first.try_emplace(member.placement.host_identity, rank).first->second);
  }
  return result;
}

}  // namespace

std::vector<MateAddress> mates_of(int rank, std::span<const Member> members) {
  const std::vector<int> first = first_of_host(members);
  std::vector<MateAddress> mates;
  for (int other = 0; other < static_cast<int>(members.size()); ++other) {
    const auto index = static_cast<std::size_t>(other);
    if (other == rank || first[index] != first[static_cast<std::size_t>(rank)]) continue;
    mates.push_back({other, members[index].door});
  }
  return mates;
}

bool any_share_a_host(std::span<const Member> members) {
  const std::vector<int> first = first_of_host(members);
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    if (first[rank] != static_cast<int>(rank)) return true;
  }
  return false;
}

core::Status check_shared_hosts(std::span<const Member> members) {
  const std::vector<int> first = first_of_host(members);
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    const Member& other = members[static_cast<std::size_t>(first[rank])];
    if (members[rank].real_host == other.real_host) continue;
    return core::Error{
        core::ErrorCode::kInvalidArgument,
        fmt::format("ranks {} and {} both have FASTHOROVOD_HOST_IDENTITY \"{}\", but the one is on "
                    "host {} and the other on host {}, or in another network namespace there; "
                    "ranks that share an identity must share host and network namespace",
                    first[rank], rank, other.placement.host_identity, other.placement.host_name,
                    members[rank].placement.host_name),
        static_cast<int>(rank)};
  }
  return {};
}

}  // namespace fasthorovod::transport
