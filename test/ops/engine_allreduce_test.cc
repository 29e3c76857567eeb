// Engines that all-reduce between hosts by each algorithm: both doors, in groups of all sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::AllreduceAlgorithm;

using Placement = void (*)(core::Config&);

class EngineAllreduce
    : public ::testing::TestWithParam<std::tuple<AllreduceAlgorithm, int, Placement>> {
 protected:
  [[nodiscard]] AllreduceAlgorithm algorithm() const { return std::get<0>(GetParam()); }
  [[nodiscard]] int size() const { return std::get<1>(GetParam()); }
  void place(core::Config& config) const { std::get<2>(GetParam())(config); }
};

/// Both doors, tensors alone and fused, in place or not, small and with several chunks.
Floats all_kinds(Engine& engine) {
  const int rank = engine.world().rank;
  Floats results;
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{100'003}}) {
    Floats named = numbers_of(rank, count);
    Floats fused = numbers_of(rank + 7, count);
    const Floats ordered = numbers_of(rank, count);
    Floats sum(count);
    Floats at_once = ordered;
    auto members = engine.submit_bundle("bundle." + std::to_string(count),
                                        {allreduce_of("a." + std::to_string(count), named),
                                         allreduce_of("b." + std::to_string(count), fused)});
    EXPECT_TRUE(members) << members.error().message;
    const auto handle = engine.submit_ordered(call(OrderedKind::kAllreduce, ordered, sum));
    for (const Handle& member : *members) EXPECT_TRUE(member.wait());
    expect_success(handle);
    EXPECT_TRUE(engine.run(call(OrderedKind::kAllreduce, at_once, at_once)));
    EXPECT_EQ(at_once, sum);
    append(results, named);
    append(results, fused);
    append(results, sum);
  }
  return results;
}

TEST_P(EngineAllreduce, SumsAlikeOnAllRanksAndInEveryRun) {
  std::vector<Floats> results(static_cast<std::size_t>(size()));
  for (int run = 0; run < 2; ++run) {
    run_as_threads(size(),
                   [&](Engine& engine) {
                     EXPECT_EQ(engine.allreduce_plan().choose(1, size()), algorithm());
                     Floats& mine = results[static_cast<std::size_t>(engine.world().rank)];
                     const Floats before = std::exchange(mine, all_kinds(engine));
                     EXPECT_TRUE(before.empty() || mine == before);
                   },
                   {.adjust = [&](core::Config& config) {
                     place(config);
                     config.allreduce = algorithm();
                   }});
  }
  for (const Floats& result : results) EXPECT_TRUE(result == results[0]);
  EXPECT_FALSE(results[0].empty());
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EngineAllreduce,
                         ::testing::Combine(::testing::Values(AllreduceAlgorithm::kRing,
                                                              AllreduceAlgorithm::kTwoHop,
                                                              AllreduceAlgorithm::kOneHop),
                                            ::testing::Values(2, 3, 5),
                                            ::testing::Values(live_apart)));
INSTANTIATE_TEST_SUITE_P(InPairs, EngineAllreduce,
                         ::testing::Combine(::testing::Values(AllreduceAlgorithm::kRing,
                                                              AllreduceAlgorithm::kTwoHop,
                                                              AllreduceAlgorithm::kOneHop),
                                            ::testing::Values(3, 4, 7),
                                            ::testing::Values(live_in_pairs)));

// What a rank sends besides is notices.
TEST(EngineAllreduceInPairs, OneRankOfAHostSendsWhatIsLittle) {
  constexpr std::size_t kElements = 4096;
  for (const AllreduceAlgorithm algorithm :
       {AllreduceAlgorithm::kRing, AllreduceAlgorithm::kOneHop}) {
    run_as_threads(4,
                   [&](Engine& engine) {
                     const std::uint64_t before = engine.statistics().bytes_sent;
                     Floats values(kElements, 1.0F);
                     EXPECT_TRUE(engine.run(call(OrderedKind::kAllreduce, values, values)));
                     EXPECT_EQ(values, Floats(kElements, 4.0F));
                     const std::uint64_t sent = engine.statistics().bytes_sent - before;
                     const bool sends =
                         algorithm == AllreduceAlgorithm::kRing || engine.world().rank % 2 == 0;
                     EXPECT_EQ(sent >= kElements, sends) << sent;
                   },
                   {.adjust = [&](core::Config& config) {
                     live_in_pairs(config);
                     config.allreduce = algorithm;
                   }});
  }
}

TEST(EngineAllreducePlan, IsMeasuredAndTheSameOnAllRanks) {
  std::vector<core::AllreducePlan> plans(3);
  run_as_threads(3,
                 [&](Engine& engine) {
                   plans[static_cast<std::size_t>(engine.world().rank)] = engine.allreduce_plan();
                 },
                 {.adjust = live_apart});
  EXPECT_TRUE(plans[0].measured);
  EXPECT_GT(plans[0].figures.reduced_seconds, 0);
  EXPECT_EQ(plans[1], plans[0]);
  EXPECT_EQ(plans[2], plans[0]);
}

}  // namespace
}  // namespace fasthorovod::ops::testing
