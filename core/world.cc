#include "core/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace fasthorovod::core {

namespace {

std::vector<int> ranks_per_host(const World& world) {
  std::vector<int> counts(world.host_names.size(), 0);
  for (const int host : world.host_of_rank) ++counts[static_cast<std::size_t>(host)];
  return counts;
}

void number_hosts(World& world, const std::vector<Placement>& placements) {
  world.host_of_rank.clear();
  world.host_names.clear();
  std::unordered_map<std::string, int> host_of_identity;
  for (const Placement& placement : placements) {
    const auto next = static_cast<int>(world.host_names.size());
    const auto [found, is_new] = host_of_identity.try_emplace(placement.host_identity, next);
    if (is_new) world.host_names.push_back(placement.host_name);
    world.host_of_rank.push_back(found->second);
  }
}

}  // namespace

std::string World::describe(int any_rank) const {
  if (any_rank < 0 || static_cast<std::size_t>(any_rank) >= host_of_rank.size()) {
    return fmt::format("rank {}", any_rank);
  }
  const auto host = static_cast<std::size_t>(host_of_rank[static_cast<std::size_t>(any_rank)]);
  return fmt::format("rank {} (host {})", any_rank, host_names.at(host));
}

World make_world(const JobId& job, std::uint32_t epoch, int rank,
                 const std::vector<Placement>& placements) {
  World world;
  world.job = job;
  world.epoch = epoch;
  world.rank = rank;
  world.size = static_cast<int>(placements.size());
  number_hosts(world, placements);

  const auto first = world.host_of_rank.begin();
  const int own_host = world.host_of_rank.at(static_cast<std::size_t>(rank));
  world.local_rank = static_cast<int>(std::count(first, first + rank, own_host));

  const std::vector<int> counts = ranks_per_host(world);
  world.local_size = counts[static_cast<std::size_t>(own_host)];
  world.homogeneous =
      std::all_of(counts.begin(), counts.end(), [&](int count) { return count == counts.front(); });

  // Only hosts with a rank of this local number take part; on uneven hosts they may be few.
  const auto has_peer = [&](int count) { return count > world.local_rank; };
  world.cross_rank =
      static_cast<int>(std::count_if(counts.begin(), counts.begin() + own_host, has_peer));
  world.cross_size = static_cast<int>(std::count_if(counts.begin(), counts.end(), has_peer));
  return world;
}

}  // namespace fasthorovod::core
