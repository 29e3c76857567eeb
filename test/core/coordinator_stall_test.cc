#include <gtest/gtest.h>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

using std::chrono::seconds;

CoordinatorOptions options_for(int size, int warning, int limit) {
  CoordinatorOptions options;
  options.size = size;
  options.stall_warning = seconds(warning);
  options.stall_limit = seconds(limit);
  return options;
}

std::vector<std::string> warnings_at(SimulatedRanks& ranks, int second) {
  ranks.now = TimePoint{} + seconds(second);
  return ranks.coordinator().take_warnings(ranks.now);
}

TEST(Stall, WarnsOnceThenEachTimeTheWaitDoubles) {
  SimulatedRanks ranks(options_for(4, 10, 0));
  ranks.submit(0, allreduce("a"));
  ranks.submit(2, allreduce("a"));
  ranks.settle();
  EXPECT_EQ(ranks.coordinator().next_deadline(), TimePoint{} + seconds(10));
  EXPECT_TRUE(warnings_at(ranks, 9).empty());
  EXPECT_EQ(warnings_at(ranks, 10),
            (std::vector<std::string>{
                "rank 1, 3 did not submit what other ranks wait for: \"a\" (10 s)"}));
  EXPECT_EQ(ranks.coordinator().next_deadline(), TimePoint{} + seconds(20));
  EXPECT_TRUE(warnings_at(ranks, 19).empty());
  EXPECT_EQ(warnings_at(ranks, 20).size(), 1u);
  EXPECT_TRUE(warnings_at(ranks, 39).empty());
  EXPECT_EQ(warnings_at(ranks, 45).size(), 1u);
  EXPECT_TRUE(warnings_at(ranks, 79).empty());
  EXPECT_EQ(warnings_at(ranks, 80).size(), 1u);
}

TEST(Stall, SaysOneSentenceForAllThatWaitsForTheSameRanks) {
  SimulatedRanks ranks(options_for(2, 10, 0));
  for (int i = 0; i < 9; ++i) ranks.submit(0, allreduce("t" + std::to_string(i)));
  ranks.submit(1, allreduce("other"));
  ranks.settle();
  EXPECT_EQ(warnings_at(ranks, 12),
            (std::vector<std::string>{
                "rank 0 did not submit what other ranks wait for: \"other\" (12 s)",
                "rank 1 did not submit what other ranks wait for: \"t0\" (12 s), \"t1\" (12 s), "
                "\"t2\" (12 s), \"t3\" (12 s), \"t4\" (12 s), \"t5\" (12 s) and 3 more"}));
}

TEST(Stall, IsSilentAboutWhatCameInTime) {
  SimulatedRanks ranks(options_for(2, 10, 20));
  ranks.submit(0, allreduce("a"));
  ranks.settle();
  ranks.submit(1, allreduce("a"));
  ranks.settle();
  EXPECT_FALSE(ranks.coordinator().next_deadline().has_value());
  EXPECT_TRUE(warnings_at(ranks, 100).empty());
  EXPECT_FALSE(ranks.plan());
}

TEST(Stall, DoesNotWaitForRanksThatJoined) {
  SimulatedRanks ranks(options_for(3, 10, 0));
  ranks.join(1);
  ranks.submit(0, allreduce("a"));
  ranks.settle();
  EXPECT_EQ(
      warnings_at(ranks, 10),
      (std::vector<std::string>{"rank 2 did not submit what other ranks wait for: \"a\" (10 s)"}));
}

TEST(Stall, FailsPastTheLimitAndBlamesTheLowestMissingRank) {
  SimulatedRanks ranks(options_for(4, 0, 30));
  ranks.submit(0, allreduce("a"));
  ranks.submit(2, allreduce("a"));
  ranks.settle();
  EXPECT_EQ(ranks.coordinator().next_deadline(), TimePoint{} + seconds(30));
  ranks.now += seconds(29);
  EXPECT_FALSE(ranks.plan());
  ranks.now += seconds(1);
  ranks.settle();
  const Error error = *ranks.seen(2).outcomes.at("a").back().error;
  EXPECT_EQ(error.code, ErrorCode::kStalled);
  EXPECT_EQ(error.culprit, 1);
  EXPECT_EQ(error.message, "tensor \"a\": rank 1, 3 did not submit it within 30 s");
  EXPECT_TRUE(warnings_at(ranks, 100).empty());
}

TEST(Stall, FailsABundleAsAWhole) {
  SimulatedRanks ranks(options_for(2, 0, 30));
  ranks.submit_everywhere(bundled(allreduce("a"), "g", 2));
  ranks.submit(0, bundled(allreduce("b"), "g", 2));
  ranks.settle();
  ranks.now += seconds(30);
  ranks.settle();
  EXPECT_EQ(ranks.error_everywhere("a").code, ErrorCode::kStalled);
  EXPECT_EQ(ranks.seen(0).outcomes.at("b").back().error->culprit, 1);
  EXPECT_EQ(ranks.seen(0).outcomes.at("a").size(), 1u);
}

TEST(Stall, WarnsAboutTheRestOfABundle) {
  SimulatedRanks ranks(options_for(2, 10, 0));
  ranks.submit_everywhere(bundled(allreduce("a"), "g", 2));
  ranks.submit(0, bundled(allreduce("b"), "g", 2));
  ranks.settle();
  EXPECT_EQ(warnings_at(ranks, 10),
            (std::vector<std::string>{"rank 1 did not submit what other ranks wait for: "
                                      "\"a\" (10 s), \"b\" (10 s)"}));
}

TEST(Stall, SeesTensorsOutOfTheCacheToo) {
  SimulatedRanks ranks(options_for(2, 10, 0));
  ranks.submit_everywhere(allreduce("a"));
  ranks.settle();
  ranks.submit(1, allreduce("a"));
  ranks.settle();
  ASSERT_EQ(ranks.bits_sent(), 1u);
  EXPECT_EQ(warnings_at(ranks, 10).size(), 1u);
}

TEST(Stall, NeverHappensWhenSwitchedOff) {
  SimulatedRanks ranks(options_for(2, 0, 0));
  ranks.submit(0, allreduce("a"));
  ranks.settle();
  EXPECT_FALSE(ranks.coordinator().next_deadline().has_value());
  EXPECT_TRUE(warnings_at(ranks, 1'000'000).empty());
  EXPECT_FALSE(ranks.plan());
}

}  // namespace
}  // namespace fasthorovod::core
