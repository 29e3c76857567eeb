#include "core/cost_model.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

using enum AllreduceAlgorithm;

constexpr std::uint64_t kKiB = 1U << 10;
constexpr std::uint64_t kMiB = 1U << 20;

double time_of(AllreduceAlgorithm algorithm, std::uint64_t bytes, int ranks,
               const CostFigures& figures = {}, const CostPlacement& placement = {}) {
  return predict(algorithm, bytes, ranks, figures, placement);
}

TEST(CostModel, TakesNothingAlone) {
  for (const AllreduceAlgorithm each : {kRing, kTwoHop, kOneHop}) {
    EXPECT_EQ(time_of(each, kMiB, 1), 0);
    EXPECT_EQ(time_of(each, kMiB, 0), 0);
  }
}

TEST(CostModel, CountsHopsWhereNothingElseCosts) {
  const CostFigures figures{.hop_seconds = 1,
                            .flow_rate = 1e30,
                            .rank_rate = 1e30,
                            .moved_seconds = 0,
                            .reduced_seconds = 0,
                            .kept_seconds = 0,
                            .message_seconds = 0};
  EXPECT_DOUBLE_EQ(time_of(kRing, 100, 4, figures), 6);
  EXPECT_DOUBLE_EQ(time_of(kTwoHop, 100, 4, figures), 2);
  EXPECT_DOUBLE_EQ(time_of(kOneHop, 100, 4, figures), 1);
}

TEST(CostModel, IsLimitedByTheFlowsOfAPairOrByAllOfARank) {
  CostFigures figures{.hop_seconds = 0, .flow_rate = 10, .rank_rate = 1000};
  figures.message_seconds = 0;
  // 2 (4 - 1) / 4 of 800 bytes are 1200, to one peer or to three.
  EXPECT_DOUBLE_EQ(time_of(kRing, 800, 4, figures, {.flows = 4}), 1200 / 40.0);
  EXPECT_DOUBLE_EQ(time_of(kTwoHop, 800, 4, figures, {.flows = 4}), 400 / 40.0);
  figures.rank_rate = 20;
  EXPECT_DOUBLE_EQ(time_of(kTwoHop, 800, 4, figures, {.flows = 4}), 1200 / 20.0);
  EXPECT_DOUBLE_EQ(time_of(kOneHop, 800, 4, figures, {.flows = 4}), 2400 / 20.0);
}

TEST(CostModel, CountsWorkTwiceWhereTwoRanksShareACore) {
  CostFigures figures{.hop_seconds = 0, .flow_rate = 1e30, .rank_rate = 1e30};
  const double alone = time_of(kRing, kMiB, 4, figures, {.cores_a_rank = 1});
  EXPECT_DOUBLE_EQ(time_of(kRing, kMiB, 4, figures, {.cores_a_rank = 8}), alone);
  EXPECT_DOUBLE_EQ(time_of(kRing, kMiB, 4, figures, {.cores_a_rank = 0.5}), 2 * alone);
}

TEST(CostModel, TakesLongerForMoreBytesAndMoreRanks) {
  for (const AllreduceAlgorithm each : {kRing, kTwoHop, kOneHop}) {
    for (int ranks = 2; ranks <= 16; ++ranks) {
      for (std::uint64_t bytes = 1; bytes <= 1024 * kMiB; bytes *= 4) {
        EXPECT_LE(time_of(each, bytes, ranks), time_of(each, 4 * bytes, ranks));
        EXPECT_LE(time_of(each, bytes, ranks), time_of(each, bytes, ranks + 1));
      }
    }
  }
}

TEST(AllreduceLimits, GoFromOneHopOverTwoToTheRing) {
  const AllreduceLimits limits = allreduce_limits(4, {}, {});
  EXPECT_GT(limits.one_hop, 0U);
  EXPECT_GT(limits.two_hop, limits.one_hop);
  const AllreducePlan plan = plan_allreduce(4, {}, {});
  EXPECT_EQ(plan.choose(0, 4), kOneHop);
  EXPECT_EQ(plan.choose(limits.one_hop, 4), kOneHop);
  EXPECT_EQ(plan.choose(limits.one_hop + 1, 4), kTwoHop);
  EXPECT_EQ(plan.choose(limits.two_hop, 4), kTwoHop);
  EXPECT_EQ(plan.choose(limits.two_hop + 1, 4), kRing);
}

TEST(AllreduceLimits, NeverUseTwoHopsBetweenTwoRanks) {
  EXPECT_EQ(allreduce_limits(2, {}, {}).two_hop, 0U) << "the ring has two there, and keeps nothing";
  EXPECT_GT(allreduce_limits(2, {}, {}).one_hop, 0U);
}

TEST(AllreduceLimits, GrowWithTheHopAndShrinkWithTheCostOfKeeping) {
  AllreduceLimits last;
  for (double hop = 1e-6; hop < 1; hop *= 4) {
    const AllreduceLimits limits = allreduce_limits(4, {.hop_seconds = hop}, {});
    EXPECT_GE(limits.one_hop, last.one_hop);
    EXPECT_GE(limits.two_hop, last.two_hop);
    last = limits;
  }
  EXPECT_LE(3 * last.one_hop, 256 * kKiB) << "whatever the hop";
  EXPECT_LE(last.two_hop, 64 * kMiB) << "whatever the hop";
  const AllreduceLimits dear = allreduce_limits(4, {.rank_rate = 1e12, .kept_seconds = 1e-6}, {});
  EXPECT_LT(dear.two_hop, allreduce_limits(4, {.rank_rate = 1e12}, {}).two_hop);
}

TEST(AllreduceLimits, LeaveTheRingToGroupsThatAreTooLarge) {
  EXPECT_EQ(allreduce_limits(1, {}, {}), AllreduceLimits{});
  EXPECT_EQ(allreduce_limits(kMostRanksInAHop + 1, {}, {}), AllreduceLimits{});
  const AllreducePlan plan = plan_allreduce(100, {}, {});
  EXPECT_EQ(plan.limits.size(), static_cast<std::size_t>(kMostRanksInAHop - 1));
  EXPECT_EQ(plan.choose(1, 17), kRing);
  EXPECT_EQ(plan.choose(1, 1), kRing);
  EXPECT_EQ(plan.choose(1, 16), kOneHop);
  EXPECT_EQ(AllreducePlan{}.choose(1, 2), kRing);
}

TEST(AllreducePlan, IsForcedForAllSizesAndGroups) {
  AllreducePlan plan = plan_allreduce(4, {}, {});
  plan.forced = kTwoHop;
  EXPECT_EQ(plan.choose(1, 4), kTwoHop);
  EXPECT_EQ(plan.choose(1024 * kMiB, 100), kTwoHop);
}

TEST(AllreducePlan, SaysWhatItUses) {
  AllreducePlan plan = plan_allreduce(4, {}, {});
  const std::string limit = std::to_string(plan.limits[2].one_hop);
  EXPECT_EQ(describe(plan, 4).find("one hop up to " + limit + " bytes, two hops"), 0U);
  EXPECT_NE(describe(plan, 100).find("one hop up to 0 bytes"), std::string::npos);
  plan.forced = kRing;
  EXPECT_EQ(describe(plan, 4), "ring-allreduce, as FASTHOROVOD_ALLREDUCE says");
}

TEST(AllreduceAlgorithmNames, AreReadAsTheyAreWritten) {
  for (const std::string_view name : allreduce_algorithm_names()) {
    const auto algorithm = parse_allreduce_algorithm(name);
    ASSERT_TRUE(algorithm);
    EXPECT_EQ(to_string(*algorithm), name);
  }
  EXPECT_EQ(parse_allreduce_algorithm("ring"), std::nullopt);
}

}  // namespace
}  // namespace fasthorovod::core
