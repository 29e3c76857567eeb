#include "core/lane_plan.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

int spare(int cores, int ranks_on_host) {
  return spare_auxiliaries({.cores = cores}, ranks_on_host);
}

TEST(LanePlan, SparesAuxiliariesOnlyBeyondFourCoresARank) {
  EXPECT_EQ(spare(1, 1), 0);
  EXPECT_EQ(spare(4, 1), 0);
  EXPECT_EQ(spare(5, 1), 1);
  EXPECT_EQ(spare(6, 1), 2);
  EXPECT_EQ(spare(96, 1), 2);
  EXPECT_EQ(spare(16, 4), 0);
  EXPECT_EQ(spare(23, 4), 1);
  EXPECT_EQ(spare(24, 4), 2);
  EXPECT_EQ(spare(8, 64), 0);
  EXPECT_EQ(spare(0, 0), 0) << "nothing is known";
}

TEST(LanePlan, SparesAsManyAuxiliariesAsFillAKnownLink) {
  LaneWish wish{.cores = 16, .link_mbit = 10'000, .lane_mbit = 20'000, .auxiliary_mbit = 15'000};
  EXPECT_EQ(spare_auxiliaries(wish, 1), 0) << "one lane does";
  wish.link_mbit = 25'000;
  EXPECT_EQ(spare_auxiliaries(wish, 1), 1);
  EXPECT_EQ(spare_auxiliaries(wish, 2), 0) << "two ranks share the link";
  wish.link_mbit = 100'000;
  EXPECT_EQ(spare_auxiliaries(wish, 1), 4) << "and no more";
  EXPECT_EQ(spare_auxiliaries(wish, 2), 2);
  EXPECT_EQ(spare_auxiliaries(wish, 4), 0) << "no core is to spare";
  wish.cores = 6;
  EXPECT_EQ(spare_auxiliaries(wish, 1), 2);
}

TEST(LanePlan, WishesWithTheGoodputsOfTheMachine) {
  LaneCosts costs = typical_costs();
  const LaneWish typical = lane_wish(Config{}, 4);
  EXPECT_EQ(lane_wish(Config{}, 4, costs), typical);
  EXPECT_EQ(typical.link_mbit, 0) << "not its to know";
  EXPECT_GT(typical.lane_mbit, 0);
  EXPECT_GT(typical.lane_mbit, typical.auxiliary_mbit) << "it asks for every chunk";
  costs.alone.far.send *= 2;
  EXPECT_LT(lane_wish(Config{}, 4, costs).lane_mbit, typical.lane_mbit);
}

TEST(LanePlan, HasOneLaneInTheRankByDefault) {
  const LanePlan plan = plan_lanes(lane_wish(Config{}, 4), {});
  EXPECT_EQ(plan, (LanePlan{.lanes = 1, .auxiliaries = 0, .flows = 8, .measures_flows = true}));
}

TEST(LanePlan, CarriesTheDataPlane) {
  Config config;
  config.data_plane = DataPlane::kMpi;
  EXPECT_EQ(plan_lanes(lane_wish(config, 4), {}).data_plane, DataPlane::kMpi);
}

TEST(LanePlan, CountsTheCoresThatTheConfigurationSays) {
  Config config;
  EXPECT_EQ(lane_wish(config, 4).cores, 4);
  config.cores = 16;
  EXPECT_EQ(lane_wish(config, 4).cores, 16);
}

TEST(LanePlan, AddsAuxiliariesToTheLaneInTheRank) {
  EXPECT_EQ(plan_lanes({.auxiliaries = 2}, {}).lanes, 3);
  EXPECT_EQ(plan_lanes({.auxiliaries = kMostAuxiliaries}, {}).lanes, kMostLanes);
}

int chosen(const LaneWish& wish, const LaneSurroundings& around) {
  const LanePlan plan = plan_lanes(wish, around);
  EXPECT_EQ(plan.lanes, wish.lanes.value_or(1 + plan.auxiliaries));
  return plan.auxiliaries;
}

TEST(LanePlan, ChoosesAuxiliariesWhereCoresAreToSpareAndBytesCrossTheNetwork) {
  EXPECT_EQ(chosen({.cores = 16}, {.ranks_on_host = 2}), 2);
  EXPECT_EQ(chosen({.cores = 5}, {.ranks_on_host = 1}), 1);
  EXPECT_EQ(chosen({.cores = 2}, {.ranks_on_host = 2}), 0);
  EXPECT_EQ(chosen({.cores = 16}, {.ranks_on_host = 4}), 0);
  EXPECT_EQ(chosen({.cores = 16}, {.ranks_on_host = 2, .peers_elsewhere = false}), 0);
}

TEST(LanePlan, LeavesOneOfTheGivenLanesInTheRank) {
  EXPECT_EQ(chosen({.lanes = 1, .cores = 64}, {}), 0);
  EXPECT_EQ(chosen({.lanes = 2, .cores = 64}, {}), 1);
  EXPECT_EQ(chosen({.lanes = 8, .cores = 64}, {}), 2);
  EXPECT_EQ(chosen({.auxiliaries = 0, .cores = 64}, {}), 0) << "none were asked for";
}

TEST(LanePlan, TakesWhatWasGiven) {
  const LaneWish wish{.lanes = 3, .auxiliaries = 3, .flows = 7, .cores = 1};
  EXPECT_EQ(plan_lanes(wish, {.ranks_on_host = 9}),
            (LanePlan{.lanes = 3, .auxiliaries = 3, .flows = 7}));
}

TEST(LanePlan, OpensMoreFlowsThanItBeginsWithWhereItMayChoose) {
  EXPECT_EQ(flows_of_a_lane({}, 1), kMostChosenFlows);
  EXPECT_EQ(flows_of_a_lane({}, 2), kUsualFlows);
  EXPECT_EQ(flows_of_a_lane({}, 16), kUsualFlows);
  EXPECT_EQ(flows_of_a_lane(7, 2), 7);
  EXPECT_EQ(usual_flows(plan_lanes({}, {})), kUsualFlows);
  EXPECT_EQ(usual_flows(plan_lanes({.lanes = 3}, {})), 3 * kUsualFlows);
  EXPECT_EQ(usual_flows(plan_lanes({.lanes = 3, .flows = 5}, {})), 15);
}

TEST(LanePlan, SharesTheNumberThatOneSideWasTold) {
  const LanePlan chooses = plan_lanes({.lanes = 2}, {});
  EXPECT_EQ(flows_between(chooses, chooses), 8);
  EXPECT_EQ(flows_between(chooses, plan_lanes({.lanes = 1}, {})), 8);
  EXPECT_EQ(flows_between(chooses, {.lanes = 1, .flows = 3}), 3);
  EXPECT_EQ(flows_between({.lanes = 1, .flows = 16}, chooses), 16);
  EXPECT_EQ(flows_between(chooses, {.lanes = 1, .flows = 1}), 2) << "one for each lane";
}

TEST(LanePlan, SharesAsManyFlowsAsTheSideThatWantsMore) {
  const LanePlan few{.lanes = 1, .flows = 4};
  const LanePlan many{.lanes = 3, .flows = 2};
  EXPECT_EQ(flows_between(few, many), 6);
  EXPECT_EQ(flows_between(many, few), 6);
  EXPECT_EQ(flows_between(few, few), 4);
}

}  // namespace
}  // namespace fasthorovod::core
