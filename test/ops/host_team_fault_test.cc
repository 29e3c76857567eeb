#include <gtest/gtest.h>

#include <algorithm>

#include "ops/host_team.h"
#include "test/ops/host_teams.h"

namespace fasthorovod::ops {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::uint32_t kGroup = kOrderedSpace | 3;
const Error kLate{ErrorCode::kTimedOut, "rank 2 is late", 2};

TEST(HostTeam, TellsBothSidesOfADisagreementAndGoesOn) {
  HostTeams teams({.hosts = {{0, 1}}});
  TeamRun& run = teams.add({0, 1}, {.elements = 5000, .group = kGroup, .sequence = 4});
  teams.begin(run, 0);
  teams.begin(run, 1, 78);
  ASSERT_TRUE(teams.eventually(
      [&] { return teams.disagreements(0).size() == 1 && teams.disagreements(1).size() == 1; }));
  teams.fail(run, {ErrorCode::kMismatch, "they disagree"});
  for (const int rank : {0, 1}) {
    EXPECT_EQ(teams.outcome(run, rank).error().code, ErrorCode::kMismatch);
    EXPECT_EQ(teams.disagreements(rank)[0].peer, 1 - rank);
    EXPECT_EQ(teams.disagreements(rank)[0].group, kGroup);
    EXPECT_EQ(teams.disagreements(rank)[0].sequence, 4U);
  }
  EXPECT_TRUE(teams.all_areas_come_back());
  TeamRun& next = teams.add({0, 1}, {.elements = 5000, .group = kGroup, .sequence = 5});
  teams.begin_all({&next}, 1);
  teams.expect_success(next);
}

TEST(HostTeam, GivesAreasBackOfAnOperationThatFailedWhileOneMateIsAbsent) {
  HostTeams teams({.hosts = {{0, 1, 2}}});
  TeamRun& run = teams.add({0, 1, 2}, {.elements = 50'000, .group = kGroup});
  teams.begin(run, 0);
  teams.begin(run, 1);
  teams.fail(run, kLate);
  EXPECT_EQ(teams.outcome(run, 0).error().message, kLate.message);
  EXPECT_EQ(teams.outcome(run, 1).error().culprit, 2);
  EXPECT_TRUE(teams.all_areas_come_back());
}

TEST(HostTeam, GivesAreasBackOfAnOperationThatFailedOnItsWayBetweenHosts) {
  HostTeams teams({.hosts = {{0, 1}, {2, 3}}, .network = false});
  TeamRun& run = teams.add({0, 1, 2, 3}, {.elements = 50'000, .group = kGroup});
  teams.begin_all({&run}, 1);
  ASSERT_TRUE(teams.eventually([&] { return std::ranges::min(run.open) > 0; }));
  teams.fail(run, kLate);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(teams.outcome(run, rank).error().code, ErrorCode::kTimedOut);
  }
  EXPECT_TRUE(teams.all_areas_come_back());
}

// Whether a rank still completes is a matter of luck; that all areas come back is not.
TEST(HostTeam, FailsOperationsInAnyOfTheirStates) {
  HostTeams teams({.hosts = {{0, 1, 2}, {3, 4}}});
  std::mt19937_64 random(5);
  std::vector<TeamRun*> runs;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const bool inside = random() % 2 == 0;
    runs.push_back(&teams.add(
        inside ? std::vector{0, 1, 2} : std::vector{0, 1, 2, 3, 4},
        {.elements = random() % 20'000, .in_place = i % 2 == 0, .group = kGroup, .sequence = i}));
    teams.begin_all({runs.back()}, i);
    if (random() % 2 == 0) teams.fail(*runs[random() % runs.size()], kLate);
  }
  int failed = 0;
  for (TeamRun* run : runs) {
    teams.fail(*run, kLate);
    for (int position = 0; position < run->allreduce.size(); ++position) {
      const core::Status status = teams.outcome(*run, position);
      if (status) {
        run->allreduce.check(position);
      } else {
        EXPECT_EQ(status.error().code, ErrorCode::kTimedOut);
        ++failed;
      }
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_TRUE(teams.all_areas_come_back());
}

TEST(HostTeam, StopEndsWhatRunsAndWhatComesLater) {
  HostTeams teams({.hosts = {{0, 1}}});
  TeamRun& run = teams.add({0, 1}, {.elements = 50'000, .group = kGroup});
  TeamRun& later = teams.add({0, 1}, {.elements = 5, .group = kGroup, .sequence = 2});
  teams.begin(run, 0);
  teams.team(0).stop({ErrorCode::kPeerLost, "rank 1 is gone", 1});
  EXPECT_EQ(teams.outcome(run, 0).error().code, ErrorCode::kPeerLost);
  teams.begin(later, 0);
  EXPECT_EQ(teams.outcome(later, 0).error().message, "rank 1 is gone");
  // A mate that begins what was stopped here waits until it hears of it.
  teams.begin(run, 1);
  teams.team(1).fail(kGroup, 1, {ErrorCode::kPeerLost, "rank 0 is gone", 0});
  EXPECT_EQ(teams.outcome(run, 1).error().culprit, 0);
}

TEST(HostTeam, AMateFinishesThoughThisRankStoppedAfterItsOwnEnd) {
  HostTeams teams({.hosts = {{0, 1, 2}}});
  for (std::uint64_t i = 0; i < 6; ++i) {
    TeamRun& run = teams.add({0, 1, 2}, {.elements = 30'000, .group = kGroup, .sequence = i});
    teams.begin_all({&run}, i);
    if (i == 5) {
      EXPECT_TRUE(teams.outcome(run, 0));
      teams.team(0).stop({ErrorCode::kShutdown, "over"});
      EXPECT_TRUE(teams.outcome(run, 1));
      EXPECT_TRUE(teams.outcome(run, 2));
      for (int position = 0; position < 3; ++position) run.allreduce.check(position);
    } else {
      teams.expect_success(run);
    }
  }
}

}  // namespace
}  // namespace fasthorovod::ops
