#include "ops/host_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "test/ops/host_teams.h"

namespace fasthorovod::ops {
namespace {

using core::DataType;
using core::Reduction;

constexpr std::uint32_t kNamedGroup = 0;
constexpr std::uint32_t kOrderedGroup = kOrderedSpace | 3;

std::vector<int> some_ranks(int of, std::mt19937_64& random) {
  std::vector<int> ranks(static_cast<std::size_t>(of));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::shuffle(ranks, random);
  ranks.resize(random() % ranks.size() + 1);
  return ranks;
}

/// `count` operations in three groups, each among some of the ranks, of any type and reduction.
std::vector<TeamRun*> add_any(HostTeams& teams, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<DataType> types = all_data_types();
  std::vector<TeamRun*> runs;
  for (int i = 0; i < count; ++i) {
    HostAllreduceSpec spec;
    spec.elements = random() % (i % 3 == 0 ? 60'000 : 3000);
    spec.type = types[static_cast<std::size_t>(i) % types.size()];
    const std::vector<Reduction> reductions = reductions_of(spec.type);
    spec.reduction = reductions[random() % reductions.size()];
    spec.in_place = random() % 2 == 0;
    spec.group = kOrderedGroup + static_cast<std::uint32_t>(random() % 3);
    spec.sequence = static_cast<std::uint64_t>(i);
    spec.seed = random();
    spec.beyond_caches = i % 4 != 0;
    const std::vector<int> members = some_ranks(teams.size(), random);
    for (std::size_t j = 0; j < members.size(); ++j) {
      spec.lent.push_back({random() % 2 == 0, random() % 2 == 0});
    }
    runs.push_back(&teams.add(members, spec));
  }
  return runs;
}

void check_any(HostTeams& teams, const std::vector<TeamRun*>& runs) {
  for (TeamRun* run : runs) teams.expect_success(*run);
  EXPECT_TRUE(teams.all_areas_come_back());
  EXPECT_EQ(teams.heaps_after_the_end(),
            std::vector<std::size_t>(static_cast<std::size_t>(teams.size()), 0));
}

void check_any(HostTeams& teams, std::uint64_t seed) {
  const std::vector<TeamRun*> runs = add_any(teams, 65, seed);
  teams.begin_all(runs, seed);
  check_any(teams, runs);
}

class HostTeamOfMany : public testing::TestWithParam<int> {};

TEST_P(HostTeamOfMany, RunsAnyOperationsInAnyOrderOfTheirStarts) {
  Hosts host{{}};
  for (int rank = 0; rank < GetParam(); ++rank) host[0].push_back(rank);
  HostTeams teams({.hosts = host});
  check_any(teams, static_cast<std::uint64_t>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Ranks, HostTeamOfMany, testing::Values(1, 2, 3, 4, 5, 6, 8, 16));

TEST(HostTeam, RunsAcrossHostsThroughAreasThatLanesWorkIn) {
  HostTeams teams({.hosts = {{0, 1, 2}, {3}, {4, 5}}});
  check_any(teams, 11);
}

TEST(HostTeam, RunsThroughMappingsOfItsOwn) {
  HostTeams teams({.hosts = {{0, 1, 2, 3}}, .own_mappings = true});
  check_any(teams, 12);
}

TEST(HostTeam, WaitsForSpaceInATinyHeap) {
  HostTeams teams({.hosts = {{0, 1}, {2, 3}}, .heap_bytes = 6U << 14, .largest_area = 1U << 14});
  const std::vector<TeamRun*> runs = add_any(teams, 100, 13);
  teams.begin_in_order(runs, 1);
  check_any(teams, runs);
}

TEST(HostTeam, KeepsAreasForTheNamedDoor) {
  HostTeams teams({.hosts = {{0, 1}}, .heap_bytes = 8U << 14, .largest_area = 1U << 14});
  std::vector<TeamRun*> stuck;
  for (std::uint64_t i = 0; i < 10; ++i) {
    stuck.push_back(
        &teams.add({0, 1}, {.elements = 10'000, .group = kOrderedGroup, .sequence = i}));
    teams.begin(*stuck.back(), 0);
  }
  std::vector<TeamRun*> named;
  for (std::uint64_t i = 0; i < 20; ++i) {
    named.push_back(&teams.add({0, 1}, {.elements = 10'000, .group = kNamedGroup, .sequence = i}));
  }
  teams.begin_in_order(named, 1);
  for (TeamRun* run : named) teams.expect_success(*run);
  for (TeamRun* run : stuck) teams.begin(*run, 1);
  for (TeamRun* run : stuck) teams.expect_success(*run);
}

TEST(HostTeam, ALateMateHoldsUpNobodyElse) {
  HostTeams teams({.hosts = {{0, 1, 2}}});
  TeamRun& late = teams.add({0, 1, 2}, {.elements = 5000, .group = kOrderedGroup, .sequence = 1});
  TeamRun& other = teams.add({0, 1}, {.elements = 5000, .group = kOrderedGroup + 1, .sequence = 1});
  teams.begin(late, 0);
  teams.begin(late, 1);
  teams.begin(other, 1);
  teams.begin(other, 0);
  teams.expect_success(other);
  EXPECT_TRUE(teams.eventually(
      [&] { return teams.team(0).awaited(kOrderedGroup, 1) == std::vector<int>{2}; }));
  const auto wait = teams.team(0).waiting();
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->peer, -1);  // nobody is to blame: it has a time limit of its own
  EXPECT_EQ(wait->text, "all-reduce 1 waits for rank 2");
  const std::uint64_t before = teams.team(0).progress();
  teams.begin(late, 2);
  teams.expect_success(late);
  EXPECT_GT(teams.team(0).progress(), before);
  EXPECT_FALSE(teams.team(0).waiting());
}

}  // namespace
}  // namespace fasthorovod::ops
