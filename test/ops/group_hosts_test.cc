#include "ops/group_hosts.h"

#include <gtest/gtest.h>

#include <string>

namespace fasthorovod::ops {
namespace {

using Hosts = std::vector<std::vector<int>>;

core::World world_on(const std::vector<std::string>& hosts) {
  std::vector<core::Placement> placements;
  for (const std::string& host : hosts) placements.push_back({"id-" + host, host});
  return core::make_world({}, 1, 0, placements);
}

TEST(GroupHosts, GatherThePositionsOfEachHost) {
  const core::World world = world_on({"a", "b", "a", "c", "b", "a"});
  EXPECT_EQ(hosts_of(world, {0, 1, 2, 3, 4, 5}), (Hosts{{0, 2, 5}, {1, 4}, {3}}));
}

TEST(GroupHosts, ArePositionsInTheGroupAndNotRanks) {
  const core::World world = world_on({"a", "b", "a", "c", "b", "a"});
  EXPECT_EQ(hosts_of(world, {4, 5, 1}), (Hosts{{0, 2}, {1}}));
  EXPECT_EQ(hosts_of(world, {3}), (Hosts{{0}}));
}

}  // namespace
}  // namespace fasthorovod::ops
