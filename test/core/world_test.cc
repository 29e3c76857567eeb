#include "core/world.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

World world_of(int rank, const std::vector<std::string>& hosts) {
  std::vector<Placement> placements;
  for (const std::string& host : hosts) placements.push_back({"id-" + host, host});
  return make_world(JobId{}, 7, rank, placements);
}

TEST(World, NumbersHostsByTheirFirstRank) {
  const World world = world_of(0, {"b", "b", "a", "b", "a"});
  EXPECT_EQ(world.host_of_rank, (std::vector<int>{0, 0, 1, 0, 1}));
  EXPECT_EQ(world.host_names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(world.size, 5);
  EXPECT_EQ(world.epoch, 7u);
}

TEST(World, CountsLocalAndCrossRanksOnUnevenHosts) {
  const std::vector<std::string> hosts{"a", "b", "a", "b", "c", "a"};
  struct Expected {
    int local_rank, local_size, cross_rank, cross_size;
  };
  const std::vector<Expected> expected{{0, 3, 0, 3}, {0, 2, 1, 3}, {1, 3, 0, 2},
                                       {1, 2, 1, 2}, {0, 1, 2, 3}, {2, 3, 0, 1}};
  for (int rank = 0; rank < 6; ++rank) {
    const World world = world_of(rank, hosts);
    const Expected& want = expected[static_cast<std::size_t>(rank)];
    EXPECT_EQ(world.local_rank, want.local_rank) << rank;
    EXPECT_EQ(world.local_size, want.local_size) << rank;
    EXPECT_EQ(world.cross_rank, want.cross_rank) << rank;
    EXPECT_EQ(world.cross_size, want.cross_size) << rank;
    EXPECT_FALSE(world.homogeneous);
  }
}

TEST(World, SkipsHostsWithoutThatLocalRankWhenCounting) {
  // Host b has one rank: among the second ranks, host c comes right after host a.
  const World world = world_of(4, {"a", "a", "b", "c", "c"});
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.cross_rank, 1);
  EXPECT_EQ(world.cross_size, 2);
}

TEST(World, SaysWhetherHostsAreEven) {
  EXPECT_TRUE(world_of(0, {"a", "b", "b", "a"}).homogeneous);
  EXPECT_TRUE(world_of(0, {"a"}).homogeneous);
  EXPECT_FALSE(world_of(0, {"a", "b", "b"}).homogeneous);
}

TEST(World, TellsHostsApartByIdentityNotByName) {
  const World world = make_world(JobId{}, 0, 1, {{"x", "node"}, {"y", "node"}});
  EXPECT_EQ(world.local_size, 1);
  EXPECT_EQ(world.cross_size, 2);
}

TEST(World, DescribesARankWithItsHost) {
  const World world = world_of(0, {"node-a", "node-b"});
  EXPECT_EQ(world.describe(1), "rank 1 (host node-b)");
  EXPECT_EQ(world.describe(9), "rank 9");
  EXPECT_EQ(world.describe(-1), "rank -1");
}

TEST(World, IsAWorldOfOneByDefault) { EXPECT_EQ(World{}.describe(0), "rank 0 (host localhost)"); }

}  // namespace
}  // namespace fasthorovod::core
