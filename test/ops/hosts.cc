#include "test/ops/hosts.h"

#include <cstddef>

namespace fasthorovod::ops {
namespace {

// Fills `hosts` hosts with `ranks` positions: the first host gets as many as leave one each.
Hosts first_is_largest(int ranks, int hosts) {
  Hosts filled(static_cast<std::size_t>(hosts));
  int position = 0;
  while (position < ranks - hosts + 1) filled[0].push_back(position++);
  for (std::size_t host = 1; host < filled.size(); ++host) filled[host].push_back(position++);
  return filled;
}

// Deals positions to the hosts in turns.
Hosts dealt(int ranks, int hosts) {
  Hosts filled(static_cast<std::size_t>(hosts));
  for (int position = 0; position < ranks; ++position) {
    filled[static_cast<std::size_t>(position % hosts)].push_back(position);
  }
  return filled;
}

}  // namespace

std::vector<Hosts> host_groups() {
  std::vector<Hosts> groups;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int hosts = 1; hosts <= ranks; ++hosts) {
      groups.push_back(dealt(ranks, hosts));
      if (hosts > 1 && ranks > hosts) groups.push_back(first_is_largest(ranks, hosts));
    }
  }
  groups.push_back({{0, 1}, {2, 3, 4}, {5, 6, 7, 8}});
  return groups;
}

int count_ranks(const Hosts& hosts) {
  std::size_t ranks = 0;
  for (const std::vector<int>& host : hosts) ranks += host.size();
  return static_cast<int>(ranks);
}

}  // namespace fasthorovod::ops
