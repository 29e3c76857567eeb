#include "ops/group_hosts.h"

#include <unordered_map>

namespace fasthorovod::ops {

std::vector<std::vector<int>> hosts_of(const core::World& world, const std::vector<int>& members) {
  std::vector<std::vector<int>> hosts;
  std::unordered_map<int, std::size_t> index;  // by the world's number of a host
  for (std::size_t position = 0; position < members.size(); ++position) {
    const int host = world.host_of_rank[static_cast<std::size_t>(members[position])];
    const auto [entry, is_new] = index.try_emplace(host, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[entry->second].push_back(static_cast<int>(position));
  }
  return hosts;
}

}  // namespace fasthorovod::ops
