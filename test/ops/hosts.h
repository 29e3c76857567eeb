// Ways in which the ranks of a group may be spread over hosts.
#pragma once

#include <vector>

namespace fasthorovod::ops {

/// Positions in the group, by host.
using Hosts = std::vector<std::vector<int>>;

/// Groups of 1 to 9 ranks: one host, one rank a host, even and uneven hosts, with positions in
/// order and dealt out.
std::vector<Hosts> host_groups();

int count_ranks(const Hosts& hosts);

}  // namespace fasthorovod::ops
