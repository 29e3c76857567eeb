#include "tools/fasthorovodrun/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fasthorovod::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Field>
std::vector<int> each(const std::vector<Place>& places, Field field) {
  std::vector<int> values;
  for (const Place& place : places) values.push_back(place.*field);
  return values;
}

TEST(Placement, FillsHostsInOrder) {
  const auto places = place_ranks(3, {{"a", 2}, {"b", 2}});
  ASSERT_TRUE(places);
  EXPECT_THAT(each(*places, &Place::rank), ElementsAre(0, 1, 2));
  EXPECT_THAT(each(*places, &Place::size), ElementsAre(3, 3, 3));
  EXPECT_THAT(each(*places, &Place::local_rank), ElementsAre(0, 1, 0));
  EXPECT_THAT(each(*places, &Place::local_size), ElementsAre(2, 2, 1));
  EXPECT_THAT(each(*places, &Place::cross_rank), ElementsAre(0, 0, 1));
  EXPECT_THAT(each(*places, &Place::cross_size), ElementsAre(2, 1, 2));
  EXPECT_EQ((*places)[2].host, "b");
}

TEST(Placement, CountsOnlyHostsWithThatLocalRank) {
  const auto places = place_ranks(5, {{"a", 1}, {"b", 2}, {"c", 2}});
  ASSERT_TRUE(places);
  EXPECT_THAT(each(*places, &Place::cross_rank), ElementsAre(0, 1, 0, 2, 1));
  EXPECT_THAT(each(*places, &Place::cross_size), ElementsAre(3, 3, 2, 3, 2));
}

TEST(Placement, LeavesUnneededHostsOut) {
  const auto places = place_ranks(2, {{"a", 4}, {"b", 4}});
  ASSERT_TRUE(places);
  EXPECT_THAT(each(*places, &Place::local_size), ElementsAre(2, 2));
  EXPECT_THAT(each(*places, &Place::cross_size), ElementsAre(1, 1));
}

TEST(Placement, SaysHowManySlotsWereAskedAndFound) {
  const auto places = place_ranks(4, {{"a", 1}, {"b", 2}});
  ASSERT_FALSE(places);
  EXPECT_THAT(places.error().message, HasSubstr("4 ranks"));
  EXPECT_THAT(places.error().message, HasSubstr("3 slots (a: 1, b: 2)"));
}

TEST(VirtualHosts, AreBlocksThatDifferByOneAtMost) {
  const auto hosts = virtual_hosts(5, 3);
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 3U);
  EXPECT_EQ((*hosts)[0].name, "virtual-0");
  EXPECT_EQ((*hosts)[0].slots, 2);
  EXPECT_EQ((*hosts)[1].slots, 2);
  EXPECT_EQ((*hosts)[2].slots, 1);
}

TEST(VirtualHosts, AreNeverMoreThanRanks) {
  const auto hosts = virtual_hosts(2, 3);
  ASSERT_FALSE(hosts);
  EXPECT_THAT(hosts.error().message, HasSubstr("more than the 2 ranks"));
}

}  // namespace
}  // namespace fasthorovod::tools
