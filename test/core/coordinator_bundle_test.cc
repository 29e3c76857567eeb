#include <gtest/gtest.h>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

CoordinatorOptions options_for(int size) {
  CoordinatorOptions options;
  options.size = size;
  return options;
}

TEST(Bundle, RunsWhenAllMembersAreComplete) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit_everywhere(bundled(allreduce("a"), "g", 2));
  ranks.submit(0, bundled(allreduce("b"), "g", 2));
  ranks.settle();
  EXPECT_TRUE(ranks.seen(0).items.empty());
  ranks.submit(1, bundled(allreduce("b"), "g", 2));
  ranks.settle();
  ASSERT_EQ(ranks.seen(0).items.size(), 1u);
  EXPECT_EQ(ranks.seen(0).items[0].tensors.size(), 2u);
}

TEST(Bundle, StaysTogetherWhateverTheThreshold) {
  CoordinatorOptions options = options_for(2);
  for (const std::uint64_t threshold : {0ull, 20ull}) {
    options.fusion_threshold = threshold;
    SimulatedRanks ranks(options);
    for (const char* name : {"a", "b", "c"}) {
      ranks.submit_everywhere(bundled(allreduce(name), "g", 3));
    }
    ranks.submit_everywhere(allreduce("d"));
    ranks.settle();
    ASSERT_EQ(ranks.seen(1).items.size(), 2u);
    EXPECT_EQ(ranks.seen(1).items[0].tensors.size(), 3u);
  }
}

TEST(Bundle, OfSeveralTypesRunsInOnePlan) {
  SimulatedRanks ranks(options_for(2));
  Request integers = allreduce("b");
  integers.type = DataType::kInt32;
  ranks.submit_everywhere(bundled(allreduce("a"), "g", 4));
  ranks.submit_everywhere(bundled(integers, "g", 4));
  ranks.submit_everywhere(bundled(allreduce("c"), "g", 4));
  ranks.submit_everywhere(bundled(request_for(OpKind::kAllgather, "d"), "g", 4));
  ranks.settle();
  EXPECT_EQ(ranks.last_plan().number, 1u);
  ASSERT_EQ(ranks.seen(1).items.size(), 3u);
  EXPECT_EQ(ranks.seen(1).items[0].tensors.size(), 2u);
}

TEST(Bundle, FailsAsAWholeWhenRanksDisagreeAboutOneMember) {
  SimulatedRanks ranks(options_for(2));
  for (int rank = 0; rank < 2; ++rank) {
    ranks.submit(rank, bundled(allreduce("a"), "g", 3));
    ranks.submit(rank, bundled(allreduce("b", {1 + rank}), "g", 3));
    ranks.submit(rank, bundled(allreduce("c"), "g", 3));
  }
  ranks.settle();
  const std::string reason =
      "tensor \"b\": ranks disagree about the shape: rank 0: float32 [1]; rank 1: float32 [2]";
  EXPECT_EQ(ranks.error_everywhere("b").message, reason);
  EXPECT_EQ(ranks.error_everywhere("a").message, "bundle \"g\": " + reason);
  EXPECT_EQ(ranks.error_everywhere("c").message, "bundle \"g\": " + reason);
  for (const char* name : {"a", "b", "c"}) {
    ranks.submit_everywhere(bundled(allreduce(name), "g", 3));
  }
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("a"));
  EXPECT_TRUE(ranks.ran_everywhere("c"));
}

TEST(Bundle, FailsWhenRanksPutDifferentTensorsIntoIt) {
  SimulatedRanks ranks(options_for(3));
  for (int rank = 0; rank < 3; ++rank) {
    ranks.submit(rank, bundled(allreduce("a"), "g", 2));
    ranks.submit(rank, bundled(allreduce(rank == 1 ? "c" : "b"), "g", 2));
  }
  ranks.settle();
  const Error error = ranks.error_everywhere("a");
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_EQ(error.message,
            "bundle \"g\": ranks disagree about its members: \"b\" is in it on rank 0, 2 only");
  EXPECT_EQ(ranks.seen(1).outcomes.at("c").back().error->message, error.message);
  for (const char* name : {"b", "c"}) ranks.submit_everywhere(bundled(allreduce(name), "g", 2));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("b"));
}

TEST(Bundle, FailsWhenRanksDisagreeAboutItsName) {
  SimulatedRanks ranks(options_for(2));
  for (int rank = 0; rank < 2; ++rank) {
    const std::string bundle = rank == 0 ? "g" : "h";
    ranks.submit(rank, bundled(allreduce("a"), bundle, 2));
    ranks.submit(rank, bundled(allreduce("b"), bundle, 2));
  }
  ranks.settle();
  EXPECT_EQ(ranks.error_everywhere("a").code, ErrorCode::kMismatch);
  EXPECT_EQ(ranks.error_everywhere("b").code, ErrorCode::kMismatch);
  for (const char* bundle : {"g", "h"}) {
    ranks.submit_everywhere(bundled(allreduce("a"), bundle, 2));
    ranks.submit_everywhere(bundled(allreduce("b"), bundle, 2));
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("a"));
  }
}

TEST(Bundle, FailsWhenRanksDisagreeAboutItsSize) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit(0, bundled(allreduce("a"), "g", 1));
  ranks.submit(1, bundled(allreduce("a"), "g", 2));
  ranks.submit(1, bundled(allreduce("b"), "g", 2));
  ranks.settle();
  EXPECT_EQ(ranks.error_everywhere("a").code, ErrorCode::kMismatch);
  EXPECT_EQ(ranks.seen(1).outcomes.at("b").back().error->code, ErrorCode::kMismatch);
  ranks.submit_everywhere(bundled(allreduce("a"), "g", 1));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("a"));
}

TEST(Bundle, BlamesARankThatSubmitsMoreThanItSaid) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit(0, bundled(allreduce("a"), "g", 1));
  ranks.submit(0, bundled(allreduce("b"), "g", 1));
  const Status status = ranks.send(0);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().culprit, 0);
}

TEST(Bundle, IsCachedLikeOtherTensors) {
  SimulatedRanks ranks(options_for(2));
  for (int step = 0; step < 3; ++step) {
    ranks.submit_everywhere(bundled(allreduce("a"), "g", 2));
    ranks.submit_everywhere(bundled(allreduce("b"), "g", 2));
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("a"));
  }
  EXPECT_EQ(ranks.requests_sent(), 4u);
  EXPECT_EQ(ranks.bits_sent(), 8u);
}

TEST(Bundle, RunsWithoutARankThatJoined) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit(0, bundled(allreduce("a"), "g", 2));
  ranks.submit(0, bundled(allreduce("b"), "g", 2));
  ranks.settle();
  ranks.join(1);
  ranks.settle();
  EXPECT_TRUE(ranks.ran("a", {0}));
  EXPECT_TRUE(ranks.ran("b", {0}));
}

TEST(Bundle, OfThousandsOfTensorsIsQuick) {
  SimulatedRanks ranks(options_for(4));
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 3000; ++i) {
      ranks.submit_everywhere(bundled(allreduce("t" + std::to_string(i), {1}), "g", 3000));
    }
    ranks.settle();
  }
  EXPECT_EQ(ranks.seen(3).items.size(), 2u);
}

}  // namespace
}  // namespace fasthorovod::core
