#include <gtest/gtest.h>

#include <set>

#include "core/control_message.h"
#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

CoordinatorOptions options_for(int size, std::uint32_t capacity) {
  CoordinatorOptions options;
  options.size = size;
  options.cache_capacity = capacity;
  return options;
}

std::vector<std::string> names(int count) {
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) result.push_back("layer." + std::to_string(i) + ".weight");
  return result;
}

void run_step(SimulatedRanks& ranks, const std::vector<std::string>& tensors) {
  for (const std::string& name : tensors) ranks.submit_everywhere(allreduce(name));
  ranks.settle();
  for (const std::string& name : tensors) EXPECT_TRUE(ranks.ran_everywhere(name));
}

TEST(Cache, MakesTheSteadyStateBitsOnly) {
  SimulatedRanks ranks(options_for(3, 4096));
  const auto tensors = names(200);
  run_step(ranks, tensors);
  EXPECT_EQ(ranks.requests_sent(), 600u);
  for (int step = 0; step < 3; ++step) {
    run_step(ranks, tensors);
    EXPECT_TRUE(ranks.last_plan().cache_changes.empty());
    EXPECT_LT(encode(ranks.last_plan()).size(), 300u);
  }
  EXPECT_EQ(ranks.requests_sent(), 600u);
  EXPECT_EQ(ranks.bits_sent(), 1800u);
}

TEST(Cache, KeepsOperationsButNoBarriers) {
  SimulatedRanks ranks(options_for(2, 10));
  for (int step = 0; step < 2; ++step) {
    ranks.submit_everywhere(request_for(OpKind::kBroadcast, "a"));
    ranks.submit_everywhere(request_for(OpKind::kBarrier, "b"));
    ranks.settle();
  }
  EXPECT_EQ(ranks.cache(1).size(), 1u);
  EXPECT_EQ(ranks.bits_sent(), 2u);
}

TEST(Cache, IsOffWithoutCapacity) {
  SimulatedRanks ranks(options_for(2, 0));
  run_step(ranks, names(5));
  run_step(ranks, names(5));
  EXPECT_EQ(ranks.bits_sent(), 0u);
  EXPECT_EQ(ranks.cache(0).size(), 0u);
}

TEST(Cache, HoldsNoMoreThanItsCapacityAndAllRanksAgree) {
  SimulatedRanks ranks(options_for(3, 4));
  for (int step = 0; step < 20; ++step) {
    run_step(ranks, names(3 + step % 9));
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_LE(ranks.cache(rank).size(), 4u);
      for (std::uint32_t position = 0; position < 8; ++position) {
        const Request* own = ranks.cache(rank).at(position);
        const Request* first = ranks.cache(0).at(position);
        ASSERT_EQ(own == nullptr, first == nullptr);
        if (own != nullptr) {
          EXPECT_EQ(*own, *first);
        }
      }
    }
  }
  EXPECT_GT(ranks.bits_sent(), 0u);
}

TEST(Cache, EvictsWhatWasUsedLeastRecently) {
  SimulatedRanks ranks(options_for(2, 2));
  run_step(ranks, {"a"});
  run_step(ranks, {"b"});
  run_step(ranks, {"a"});
  run_step(ranks, {"c"});
  EXPECT_TRUE(ranks.cache(1).find(allreduce("a")).has_value());
  EXPECT_FALSE(ranks.cache(1).find(allreduce("b")).has_value());
  EXPECT_TRUE(ranks.cache(1).find(allreduce("c")).has_value());
}

TEST(Cache, NeverEvictsWhatTheSamePlanUses) {
  SimulatedRanks ranks(options_for(2, 2));
  run_step(ranks, {"a", "b"});
  run_step(ranks, {"c", "d", "a", "b"});
  EXPECT_TRUE(ranks.cache(0).find(allreduce("a")).has_value());
  EXPECT_TRUE(ranks.cache(0).find(allreduce("b")).has_value());
}

TEST(Cache, UsesAFreedPositionOnlyWhenAllRanksAppliedThePlan) {
  SimulatedRanks ranks(options_for(2, 1));
  run_step(ranks, {"a"});
  const auto position = ranks.cache(0).find(allreduce("a"));
  ASSERT_TRUE(position.has_value());
  // Both submit "b", which pushes "a" out; rank 1 does not hear of it for a long time.
  ranks.submit_everywhere(allreduce("b"));
  ranks.send_all();
  ASSERT_TRUE(ranks.plan());
  ranks.deliver(0);
  for (const char* name : {"c", "d", "e"}) {
    ranks.submit(0, allreduce(name));
    ranks.submit(1, allreduce(name));
    ranks.send_all();
    ASSERT_TRUE(ranks.plan());
    for (const CacheChange& change : ranks.last_plan().cache_changes) {
      EXPECT_FALSE(change.insert && change.position == *position);
    }
    ranks.deliver(0);
  }
  // Its bit still means "a".
  ranks.submit(1, allreduce("a"));
  ranks.submit(0, allreduce("a"));
  ranks.send_all();
  ASSERT_TRUE(ranks.plan());
  EXPECT_EQ(ranks.bits_sent(), 1u);
  while (ranks.deliver(0) || ranks.deliver(1)) {
  }
  EXPECT_TRUE(ranks.ran_everywhere("a"));
  // Once rank 1 has caught up and said so, positions are used again.
  std::set<std::uint32_t> positions;
  for (int step = 0; step < 8; ++step) {
    run_step(ranks, {step % 2 == 0 ? "f" : "g"});
    for (const CacheChange& change : ranks.last_plan().cache_changes) {
      if (change.insert) positions.insert(change.position);
    }
  }
  EXPECT_EQ(positions, (std::set<std::uint32_t>{0, 1}));
}

TEST(Cache, UnderstandsABitChosenBeforeThePlanThatFreedIt) {
  SimulatedRanks ranks(options_for(2, 1));
  run_step(ranks, {"a"});
  ranks.submit_everywhere(allreduce("b"));
  ranks.send_all();
  ASSERT_TRUE(ranks.plan());
  // Rank 1 chooses the bit, then applies the plan that frees it, then sends both in one message.
  ranks.submit(1, allreduce("a"));
  while (ranks.deliver(0) || ranks.deliver(1)) {
  }
  ASSERT_TRUE(ranks.send(0).has_value());
  ASSERT_TRUE(ranks.send(1).has_value());
  ranks.submit(0, allreduce("a"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("a"));
  EXPECT_EQ(ranks.bits_sent(), 1u);
}

TEST(Cache, FollowsATensorThatChanges) {
  SimulatedRanks ranks(options_for(2, 10));
  for (int step = 0; step < 4; ++step) {
    const auto request = allreduce("a", {step / 2 + 1});
    ranks.submit_everywhere(request);
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("a"));
    EXPECT_EQ(ranks.seen(1).items.back().tensors[0].shape, request.shape);
    EXPECT_TRUE(ranks.cache(1).find(request).has_value());
    EXPECT_EQ(ranks.cache(1).size(), 1u);
  }
  EXPECT_EQ(ranks.bits_sent(), 4u);
}

TEST(Cache, DoesNotServeAnotherOperationOfACachedName) {
  SimulatedRanks ranks(options_for(2, 10));
  run_step(ranks, {"a"});
  ranks.submit_everywhere(request_for(OpKind::kBarrier, "a", {}));
  ranks.settle();
  EXPECT_EQ(ranks.seen(1).items.back().op, OpKind::kBarrier);
  EXPECT_TRUE(ranks.ran_everywhere("a"));
  EXPECT_TRUE(ranks.seen(1).items.back().tensors[0].shape.empty());
}

TEST(Cache, KnowsTheRowsOfEveryRankInAnAllgather) {
  SimulatedRanks ranks(options_for(3, 10));
  const auto gather = [&](std::int64_t rows_of_rank_1) {
    for (int rank = 0; rank < 3; ++rank) {
      const std::int64_t rows = rank == 1 ? rows_of_rank_1 : rank + 1;
      ranks.submit(rank, request_for(OpKind::kAllgather, "a", {rows, 2}));
    }
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("a"));
    return ranks.seen(2).items.back().tensors[0].first_dimensions;
  };
  EXPECT_EQ(gather(2), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(gather(2), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(ranks.bits_sent(), 3u);
  // Only rank 1 has to spell its request out.
  EXPECT_EQ(gather(0), (std::vector<std::int64_t>{1, 0, 3}));
  EXPECT_EQ(ranks.bits_sent(), 5u);
  EXPECT_EQ(gather(0), (std::vector<std::int64_t>{1, 0, 3}));
  EXPECT_EQ(ranks.bits_sent(), 8u);
  ranks.expect_same_order();
}

TEST(Cache, ForgetsWhatALeftRankNeverAcknowledges) {
  SimulatedRanks ranks(options_for(2, 1));
  run_step(ranks, {"a"});
  ranks.coordinator().leave(1, ranks.now);
  ranks.submit(0, allreduce("a"));
  ranks.settle();
  EXPECT_EQ(ranks.seen(0).outcomes.at("a").back().error->code, ErrorCode::kShutdown);
}

TEST(Cache, KeepsTenThousandTensorsCheap) {
  SimulatedRanks ranks(options_for(8, 10000));
  const auto tensors = names(10000);
  for (int step = 0; step < 3; ++step) {
    for (const std::string& name : tensors) ranks.submit_everywhere(allreduce(name, {1}));
    ranks.settle();
  }
  EXPECT_EQ(ranks.requests_sent(), 80000u);
  EXPECT_EQ(ranks.bits_sent(), 160000u);
}

}  // namespace
}  // namespace fasthorovod::core
