#include <gtest/gtest.h>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

CoordinatorOptions options_for(int size) {
  CoordinatorOptions options;
  options.size = size;
  return options;
}

void expect_joins(const SimulatedRanks& ranks, const std::vector<int>& last_joined) {
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(ranks.seen(rank).joins, last_joined);
}

TEST(Join, ReturnsTheRankThatJoinedLastAndResetsAll) {
  SimulatedRanks ranks(options_for(3));
  for (const int rank : {1, 0, 2}) {
    EXPECT_TRUE(ranks.seen(0).joins.empty());
    ranks.join(rank);
    ranks.settle();
  }
  expect_joins(ranks, {2});
  ranks.submit(0, allreduce("a"));
  ranks.submit(1, allreduce("a"));
  ranks.settle();
  EXPECT_FALSE(ranks.ran("a", {0})) << "rank 2 is active again";
  ranks.submit(2, allreduce("a"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("a"));
  for (const int rank : {2, 1, 0}) {
    ranks.join(rank);
    ranks.settle();
  }
  expect_joins(ranks, {2, 0});
}

TEST(Join, LetsTheOthersReduceWithAndWithoutAWarmCache) {
  for (const bool warm : {false, true}) {
    SimulatedRanks ranks(options_for(3));
    if (warm) {
      ranks.submit_everywhere(allreduce("a", {5}));
      ranks.settle();
    }
    ranks.join(1);
    ranks.settle();
    for (int step = 0; step < 2; ++step) {
      ranks.submit(0, allreduce("a", {5}));
      ranks.submit(2, allreduce("a", {5}));
      ranks.settle();
      EXPECT_TRUE(ranks.ran("a", {0, 2}));
    }
    // The joined rank takes part: it knows what, how large, and that it has nothing of its own.
    const PlanItem& item = ranks.seen(1).items.back();
    EXPECT_EQ(item.tensors[0].name, "a");
    EXPECT_EQ(item.tensors[0].shape, (std::vector<std::int64_t>{5}));
    ranks.join(2);
    ranks.join(0);
    ranks.settle();
    ASSERT_EQ(ranks.seen(1).joins.size(), 1u);
    // What ran meanwhile is in the cache of the rank that joined, too.
    ranks.submit_everywhere(allreduce("a", {5}));
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("a"));
    EXPECT_TRUE(ranks.cache(1).find(allreduce("a", {5})).has_value());
    ranks.expect_same_order();
  }
}

TEST(Join, CompletesWhatWaitedForTheRankThatJoins) {
  SimulatedRanks ranks(options_for(3));
  ranks.submit(0, allreduce("a"));
  ranks.submit(2, allreduce("a"));
  ranks.settle();
  ranks.join(1);
  ranks.settle();
  EXPECT_TRUE(ranks.ran("a", {0, 2}));
}

TEST(Join, CountsWhatARankSubmittedBeforeItJoined) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit(0, allreduce("a"));
  ranks.join(0);
  ranks.settle();
  EXPECT_FALSE(ranks.ran("a", {0}));
  ranks.submit(1, allreduce("a"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("a"));
}

TEST(Join, RunsWhatOneRankSubmittedBeforeTheLastJoins) {
  SimulatedRanks ranks(options_for(2));
  ranks.join(1);
  ranks.settle();
  ranks.submit(0, allreduce("a"));
  ranks.join(0);
  ranks.settle();
  EXPECT_TRUE(ranks.ran("a", {0}));
  ASSERT_EQ(ranks.seen(0).items.size(), 2u);
  EXPECT_EQ(ranks.seen(0).items[1].op, OpKind::kJoin);
  expect_joins(ranks, {0});
}

TEST(Join, FailsOtherOperationsMeanwhile) {
  for (const OpKind op : {OpKind::kAllgather, OpKind::kBroadcast, OpKind::kBarrier}) {
    SimulatedRanks ranks(options_for(3));
    ranks.join(1);
    ranks.submit(0, request_for(op, "x"));
    ranks.submit(2, request_for(op, "x"));
    ranks.settle();
    const Error error = *ranks.seen(0).outcomes.at("x").back().error;
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_EQ(error.message,
              "tensor \"x\": rank 1 joined; until every rank has, only all-reduces "
              "run, no " +
                  std::string(to_string(op)));
    ranks.join(0);
    ranks.join(2);
    ranks.settle();
    ranks.submit_everywhere(request_for(op, "x"));
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("x"));
  }
}

TEST(Join, RunsABroadcastThatTheRankSubmittedBefore) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit(0, request_for(OpKind::kBroadcast, "x"));
  ranks.join(0);
  ranks.submit(1, request_for(OpKind::kBroadcast, "x"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("x"));
}

TEST(Join, BlamesARankThatJoinsTwice) {
  SimulatedRanks ranks(options_for(2));
  ranks.join(0);
  ASSERT_TRUE(ranks.send(0).has_value());
  ranks.join(0);
  const Status status = ranks.send(0);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kDuplicateName);
}

TEST(Join, FailsWhenARankLeaves) {
  SimulatedRanks ranks(options_for(3));
  ranks.join(0);
  ranks.settle();
  ranks.coordinator().leave(2, ranks.now);
  ranks.settle();
  EXPECT_EQ(ranks.seen(0).joins, (std::vector<int>{-1}));
  ranks.join(1);
  ranks.settle();
  EXPECT_EQ(ranks.seen(1).joins, (std::vector<int>{-1, -1}));
}

TEST(Join, OfAWorldOfOneReturnsAtOnce) {
  SimulatedRanks ranks(options_for(1));
  ranks.join(0);
  ranks.settle();
  expect_joins(ranks, {0});
}

}  // namespace
}  // namespace fasthorovod::core
