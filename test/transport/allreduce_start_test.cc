// The plan for all-reduces that rank 0 makes at the start: the same on all ranks, measured or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/transport/plane_group.h"
#include "transport/allreduce_plans.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;
using ::testing::HasSubstr;

using Change = std::function<void(core::Config&)>;

void live_apart(core::Config& config) {
  config.host_identity = "host " + std::to_string(config.rank);
  if (config.rank == 0) config.processor = core::ProcessorCosts{1e-10, 2e-10};
}

/// The plan of a world of three, which all ranks have alike.
core::AllreducePlan plan_of_three(const Change& change) {
  World world(Mode::kByHand, 3);
  const auto ranks = world.start_all(0, change);
  const core::AllreducePlan plan = ranks[0]->plane().allreduce_plan();
  for (const auto& rank : ranks) EXPECT_EQ(rank->plane().allreduce_plan(), plan);
  return plan;
}

TEST(AllreducePlanAtTheStart, IsMeasuredBetweenHosts) {
  const core::AllreducePlan plan = plan_of_three(live_apart);
  EXPECT_TRUE(plan.measured);
  EXPECT_FALSE(plan.forced);
  EXPECT_GT(plan.figures.hop_seconds, 0);
  EXPECT_GT(plan.figures.message_seconds, 0);
  EXPECT_GT(plan.figures.rank_rate, 0);
  EXPECT_EQ(plan.figures.kept_seconds, 1e-10);
  EXPECT_EQ(plan.figures.reduced_seconds, 2e-10);
  EXPECT_GT(plan.placement.cores_a_rank, 0);
  EXPECT_EQ(plan.limits.size(), 2U);
}

TEST(AllreducePlanAtTheStart, IsNotMeasuredInsideAHost) {
  const core::AllreducePlan plan = plan_of_three([](core::Config& config) {
    live_apart(config);
    config.host_identity = "one";
  });
  EXPECT_FALSE(plan.measured);
  EXPECT_EQ(plan.figures, core::CostFigures{});
}

TEST(AllreducePlanAtTheStart, HasNothingMeasuredWhenItIsToBeDeterministic) {
  const core::AllreducePlan plan = plan_of_three([](core::Config& config) {
    live_apart(config);
    config.deterministic = true;
    config.flows = 3;
    config.cores = 1;
  });
  EXPECT_EQ(plan, core::plan_allreduce(3, {}, {}));
}

TEST(AllreducePlanAtTheStart, IsForcedAndThenNotMeasured) {
  const core::AllreducePlan plan = plan_of_three([](core::Config& config) {
    live_apart(config);
    config.allreduce = core::AllreduceAlgorithm::kOneHop;
  });
  EXPECT_FALSE(plan.measured);
  EXPECT_EQ(plan.forced, core::AllreduceAlgorithm::kOneHop);
}

TEST(AllreducePlanAtTheStart, IsMadeForAWorldOfOne) {
  World world(Mode::kByHand, 1);
  const auto ranks = world.start_all();
  EXPECT_EQ(ranks[0]->plane().allreduce_plan().limits.size(), 0U);
}

/// What all ranks of a world of three fail with.
std::string refusal_of_three(const Change& change) {
  World world(Mode::kByHand, 3);
  std::vector<std::future<World::Outcome>> starts;
  for (int rank = 0; rank < 3; ++rank) {
    core::Config config = world.config(rank);
    live_apart(config);
    change(config);
    starts.push_back(world.start(config));
  }
  std::string message;
  for (auto& start : starts) {
    auto outcome = start.get();
    EXPECT_FALSE(outcome);
    if (outcome) continue;
    EXPECT_EQ(outcome.error().code, core::ErrorCode::kInvalidArgument);
    if (message.empty()) message = outcome.error().message;
    EXPECT_EQ(outcome.error().message, message);
  }
  return message;
}

TEST(AllreducePlanAtTheStart, IsRefusedWhenRanksWereToldDifferentThings) {
  EXPECT_THAT(
      refusal_of_three([](core::Config& config) {
        if (config.rank == 1) config.allreduce = core::AllreduceAlgorithm::kRing;
      }),
      HasSubstr("FASTHOROVOD_ALLREDUCE is auto on ranks 0, 2 and ring-allreduce on rank 1"));
  EXPECT_THAT(
      refusal_of_three([](core::Config& config) { config.deterministic = config.rank == 0; }),
      HasSubstr("FASTHOROVOD_DETERMINISTIC is 1 on rank 0 and 0 on ranks 1, 2"));
  EXPECT_THAT(refusal_of_three([](core::Config& config) {
                if (config.rank == 0) return;
                config.allreduce = config.rank == 1 ? core::AllreduceAlgorithm::kRing
                                                    : core::AllreduceAlgorithm::kTwoHop;
              }),
              HasSubstr("is auto on rank 0, ring-allreduce on rank 1 and two-hop-allreduce on "
                        "rank 2"));
}

Member member(const std::string& host, const std::string& real_host, int cores) {
  return {{host, host}, real_host, {}, "", {.cores = cores}, 16};
}

TEST(AllreducePlans, ProbeOneRankOfEachOtherHost) {
  const std::vector<Member> members{member("a", "x", 4), member("a", "x", 4), member("b", "y", 4),
                                    member("b", "y", 4), member("c", "z", 4)};
  EXPECT_EQ(ranks_to_probe(members), (std::vector{2, 4}));
  EXPECT_TRUE(ranks_to_probe(std::span(members).first(2)).empty());
  std::vector<Member> many;
  for (int host = 0; host < 100; ++host) many.push_back(member(std::to_string(host), "x", 4));
  EXPECT_EQ(ranks_to_probe(many).size(), 4U) << "a few do";
}

TEST(AllreducePlans, CountTheCoresOfTheRealHost) {
  const std::vector<Member> posing{member("a", "x", 2), member("b", "x", 2), member("c", "x", 2),
                                   member("d", "x", 2)};
  EXPECT_EQ(plan_for(posing, nullptr).placement.cores_a_rank, 0.5);
  const std::vector<Member> apart{member("a", "x", 8), member("b", "y", 3)};
  EXPECT_EQ(plan_for(apart, nullptr).placement.cores_a_rank, 3);
  EXPECT_EQ(plan_for(std::vector{member("a", "x", 0), member("b", "y", 0)}, nullptr)
                .placement.cores_a_rank,
            1)
      << "nothing is known";
}

}  // namespace
}  // namespace fasthorovod::transport
