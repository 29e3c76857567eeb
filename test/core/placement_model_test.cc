#include "core/placement_model.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

/// Round numbers: a byte sent 1 ns, put down 1, into a scratch 0.5, added 1; far all twice.
LaneCosts round_costs() {
  LaneCosts costs;
  costs.alone.close = {.send = 1, .receive = 1, .receive_scratch = 0.5, .add = 1, .copy = 1};
  costs.alone.far = {.send = 2, .receive = 2, .receive_scratch = 1, .add = 2, .copy = 2};
  costs.cache = 1e12;
  costs.share = 0.5;
  return costs;
}

constexpr double kSecond = 1e9;

double time_of(const LaneCosts& costs, const LaneLoad& load) {
  return kSecond / lane_goodput(costs, load, LaneSetting::kAlone);
}

TEST(PlacementModel, AddsUpWhatAByteCosts) {
  EXPECT_DOUBLE_EQ(time_of(round_costs(), {.added = 0}), 2);
  EXPECT_DOUBLE_EQ(time_of(round_costs(), {.added = 1}), 2.5);
  EXPECT_DOUBLE_EQ(time_of(round_costs(), {.added = 0.5}), 2.25);
}

TEST(PlacementModel, SharesTheCallsOfAChunkAmongItsBytes) {
  LaneCosts costs = round_costs();
  costs.alone.close.send_call = 1024;
  costs.alone.close.receive_call = 512;
  costs.turn = 400;
  costs.look = 50;
  const double chunk = 256 << 10;
  // Of 256 KiB half comes in each of two calls.
  EXPECT_DOUBLE_EQ(time_of(costs, {.chunk_bytes = 256 << 10, .flows = 4, .added = 0}),
                   2 + (1024 + 2 * 512 + 2 * 50 + 100) / chunk);
  EXPECT_LT(time_of(costs, {.chunk_bytes = 256 << 10}), time_of(costs, {.chunk_bytes = 64 << 10}));
}

TEST(PlacementModel, CountsWhatTheCacheNoLongerHolds) {
  LaneCosts costs = round_costs();
  const LaneLoad load{.chunk_bytes = 256 << 10, .flows = 2, .added = 0};  // 1 MiB on its way
  costs.cache = 1 << 20;
  EXPECT_DOUBLE_EQ(time_of(costs, load), 2);
  costs.cache = 1 << 19;
  EXPECT_DOUBLE_EQ(time_of(costs, load), 3) << "half of it";
  costs.cache = 0;
  EXPECT_DOUBLE_EQ(time_of(costs, load), 4);
}

TEST(PlacementModel, KnowsASettingOnlyWhereItWasMeasured) {
  LaneCosts costs = round_costs();
  EXPECT_EQ(lane_goodput(costs, {}, LaneSetting::kBusyCore), 0);
  EXPECT_EQ(lane_goodput(costs, {}, LaneSetting::kHungryCache), 0);
  costs.hungry = QueueCosts{costs.alone.far, costs.alone.far};
  EXPECT_DOUBLE_EQ(lane_goodput(costs, {}, LaneSetting::kHungryCache),
                   lane_goodput(costs, {}, LaneSetting::kAlone) / 2);
}

TEST(PlacementModel, HasAuxiliariesAskForEachChunk) {
  LaneCosts costs = round_costs();
  EXPECT_DOUBLE_EQ(goodputs_of(costs, {}).auxiliary, goodputs_of(costs, {}).own);
  costs.hop = 256 << 10;  // a nanosecond a byte, each of the two
  EXPECT_DOUBLE_EQ(kSecond / goodputs_of(costs, {}).auxiliary,
                   kSecond / goodputs_of(costs, {}).own + 2);
}

TEST(PlacementModel, LimitsOrdinaryTensorsByTheThreadThatStagesThem) {
  const LaneCosts costs = round_costs();
  const RankSite arena{.cores = 64};
  const RankSite ordinary{.cores = 64, .in_arena = false};
  // Out: a copy. In: half a copy, half a sum. Everything far.
  EXPECT_DOUBLE_EQ(goodputs_of(costs, ordinary).staged, kSecond / 4);
  EXPECT_EQ(rank_goodput(costs, arena, 0), rank_goodput(costs, ordinary, 0));
  EXPECT_DOUBLE_EQ(rank_goodput(costs, arena, 8), 9 * rank_goodput(costs, arena, 0));
  EXPECT_DOUBLE_EQ(rank_goodput(costs, ordinary, 8),
                   rank_goodput(costs, ordinary, 0) + kSecond / 4);
}

TEST(PlacementModel, GivesAuxiliariesWithoutACoreAShare) {
  const LaneCosts costs = round_costs();
  const double one = rank_goodput(costs, {.cores = 16}, 0);
  EXPECT_DOUBLE_EQ(rank_goodput(costs, {.cores = 16, .ranks = 2}, 4), 5 * one);
  EXPECT_DOUBLE_EQ(rank_goodput(costs, {.cores = 16, .ranks = 4}, 4), 3 * one);
  EXPECT_DOUBLE_EQ(rank_goodput(costs, {.cores = 10, .ranks = 2}, 2), 2.5 * one);
  EXPECT_DOUBLE_EQ(rank_goodput(costs, {.cores = 16, .ranks = 16}, 0), 0.5 * one);
}

TEST(PlacementModel, FillsALinkWithAsFewAsItTakes) {
  EXPECT_EQ(auxiliaries_to_fill(10, 20, 15, 4), 0);
  EXPECT_EQ(auxiliaries_to_fill(20, 19, 15, 4), 0) << "a twentieth is worth none";
  EXPECT_EQ(auxiliaries_to_fill(20, 18, 15, 4), 1);
  EXPECT_EQ(auxiliaries_to_fill(100, 20, 15, 4), 4);
  EXPECT_EQ(auxiliaries_to_fill(100, 20, 15, 9), 5);
  EXPECT_EQ(auxiliaries_to_fill(100, 20, 0, 3), 3);
  EXPECT_EQ(auxiliaries_to_fill(100, 20, 15, 0), 0);
}

}  // namespace
}  // namespace fasthorovod::core
