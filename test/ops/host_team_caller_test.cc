// Callers in the place of a team's thread.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "test/ops/host_teams.h"

namespace fasthorovod::ops {
namespace {

using core::ErrorCode;

constexpr std::uint32_t kGroup = kOrderedSpace | 3;
constexpr std::chrono::seconds kLimit{40};  // a test that reaches it fails

const Hosts kTwoByTwo{{0, 1}, {2, 3}};

bool is_over(TeamRun& run, int position) {
  return run.outcomes[static_cast<std::size_t>(position)].wait_for(std::chrono::seconds(0)) ==
         std::future_status::ready;
}

/// Makes the steps of a team until the operation is over there.
void drive(HostTeam& team, TeamRun& run, int position) {
  const std::atomic<bool> wanted{false};
  while (!is_over(run, position) && !team.stopping()) {
    if (!team.step()) team.sleep(wanted, kLimit);
  }
}

TEST(HostTeamCaller, MakesTheStepsBesideMatesWithThreads) {
  HostTeams teams({.hosts = kTwoByTwo});
  HostTeam& team = teams.team(0);
  for (std::uint64_t i = 0; i < 50; ++i) {
    TeamRun& run =
        teams.add({0, 1, 2, 3}, {.elements = i * 997, .group = kGroup, .sequence = i, .seed = i});
    ASSERT_TRUE(team.try_take());
    EXPECT_FALSE(team.try_take()) << "taken";
    teams.begin_all({&run}, i);
    drive(team, run, 0);
    team.give_place_back();
    teams.expect_success(run);
  }
  // The last area goes back when mates are through with it, and somebody comes again.
  EXPECT_TRUE(teams.eventually([&] {
    if (!team.try_take()) return false;
    team.give_place_back();
    return teams.all_areas_are_back();
  }));
}

TEST(HostTeamCaller, LeavesTheRestToTheThread) {
  HostTeams teams({.hosts = kTwoByTwo});
  HostTeam& team = teams.team(0);
  ASSERT_TRUE(team.try_take());
  TeamRun& run = teams.add({0, 1, 2, 3}, {.elements = 30'000, .group = kGroup, .sequence = 1});
  teams.begin(run, 0);
  while (team.step()) {
  }
  team.give_place_back();
  EXPECT_FALSE(team.try_take()) << "its thread has something to do";
  for (const int position : {1, 2, 3}) teams.begin(run, position);
  teams.expect_success(run);
  EXPECT_TRUE(teams.eventually([&] {
    if (!team.try_take()) return false;
    team.give_place_back();
    return true;
  })) << "it has nothing to do any more";
}

TEST(HostTeamCaller, LeavesWhatFailedToTheThread) {
  HostTeams teams({.hosts = kTwoByTwo});
  HostTeam& team = teams.team(0);
  ASSERT_TRUE(team.try_take());
  TeamRun& run = teams.add({0, 1, 2, 3}, {.elements = 30'000, .group = kGroup, .sequence = 1});
  for (const int position : {0, 2, 3}) teams.begin(run, position);
  std::thread fails([&] { teams.fail(run, {ErrorCode::kTimedOut, "rank 1 is late", 1}); });
  drive(team, run, 0);
  team.give_place_back();
  fails.join();
  EXPECT_EQ(teams.outcome(run, 0).error().culprit, 1);
  EXPECT_TRUE(teams.all_areas_come_back());
}

TEST(HostTeamCaller, WakesWhenSomethingIsWanted) {
  HostTeams teams({.hosts = kTwoByTwo});
  HostTeam& team = teams.team(0);
  ASSERT_TRUE(team.try_take());
  std::atomic<bool> wanted{false};
  std::thread wants([&] {
    wanted.store(true);
    team.nudge();
  });
  while (!wanted.load()) team.sleep(wanted, kLimit);
  wants.join();
  team.give_place_back();
}

TEST(HostTeamCaller, GivesThePlaceBackWhenTheTeamStops) {
  HostTeams teams({.hosts = kTwoByTwo});
  HostTeam& team = teams.team(0);
  ASSERT_TRUE(team.try_take());
  TeamRun& run = teams.add({0, 1, 2, 3}, {.elements = 30'000, .group = kGroup, .sequence = 1});
  teams.begin(run, 0);
  std::thread stops([&] { team.stop({ErrorCode::kPeerLost, "rank 1 is gone", 1}); });
  drive(team, run, 0);
  EXPECT_FALSE(is_over(run, 0)) << "its memory may be in use until the place is given back";
  team.give_place_back();
  stops.join();
  EXPECT_EQ(teams.outcome(run, 0).error().culprit, 1);
  EXPECT_FALSE(team.try_take());
}

}  // namespace
}  // namespace fasthorovod::ops
