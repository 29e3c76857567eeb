#include "core/coordinator.h"

#include <gtest/gtest.h>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

CoordinatorOptions options_for(int size) {
  CoordinatorOptions options;
  options.size = size;
  return options;
}

TEST(Coordinator, RunsATensorWhenTheLastRankSubmittedIt) {
  SimulatedRanks ranks(options_for(3));
  ranks.submit(0, allreduce("a"));
  ranks.submit(2, allreduce("a"));
  ranks.settle();
  EXPECT_TRUE(ranks.seen(0).items.empty());
  ranks.submit(1, allreduce("a"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("a"));
  EXPECT_EQ(ranks.seen(1).items.size(), 1u);
}

TEST(Coordinator, LetsANameBeUsedAgain) {
  SimulatedRanks ranks(options_for(2));
  for (int step = 0; step < 3; ++step) {
    ranks.submit_everywhere(allreduce("a"));
    ranks.settle();
  }
  EXPECT_EQ(ranks.seen(1).outcomes.at("a").size(), 3u);
  EXPECT_EQ(ranks.seen(1).outcomes.at("a").back().sequence, 3u);
}

TEST(Coordinator, TellsEveryRanksRowsOfAnAllgather) {
  SimulatedRanks ranks(options_for(3));
  for (int rank = 0; rank < 3; ++rank) {
    ranks.submit(rank, request_for(OpKind::kAllgather, "a", {rank + 2, 5}));
  }
  ranks.settle();
  ASSERT_TRUE(ranks.ran_everywhere("a"));
  const PlanTensor& tensor = ranks.seen(2).items.front().tensors.front();
  EXPECT_EQ(tensor.first_dimensions, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 5}));
}

TEST(Coordinator, CarriesTheParametersOfAnOperation) {
  SimulatedRanks ranks(options_for(2));
  Request request = allreduce("a", {3, 4});
  request.type = DataType::kFloat16;
  request.reduction = Reduction::kAverage;
  request.prescale = 0.5;
  request.postscale = 2;
  request.codec = {CodecId::kTwobit, 0.125F};
  Request broadcast = request_for(OpKind::kBroadcast, "b");
  broadcast.root = 1;
  ranks.submit_everywhere(request);
  ranks.submit_everywhere(broadcast);
  ranks.submit_everywhere(request_for(OpKind::kBarrier, "c", {}));
  ranks.settle();
  const auto& items = ranks.seen(1).items;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].type, DataType::kFloat16);
  EXPECT_EQ(items[0].reduction, Reduction::kAverage);
  EXPECT_EQ(items[0].prescale, 0.5);
  EXPECT_EQ(items[0].postscale, 2);
  EXPECT_EQ(items[0].codec, (CodecChoice{CodecId::kTwobit, 0.125F}));
  EXPECT_EQ(items[0].tensors[0].shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(items[1].op, OpKind::kBroadcast);
  EXPECT_EQ(items[1].root, 1);
  EXPECT_EQ(items[2].op, OpKind::kBarrier);
}

TEST(Coordinator, BlamesARankThatSubmitsANameTwice) {
  for (const bool in_one_message : {true, false}) {
    SimulatedRanks ranks(options_for(2));
    ranks.submit(1, allreduce("a"));
    if (!in_one_message) {
      ASSERT_TRUE(ranks.send(1).has_value());
    }
    ranks.submit(1, allreduce("a"));
    const Status status = ranks.send(1);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kDuplicateName);
    EXPECT_EQ(status.error().culprit, 1);
    EXPECT_NE(status.error().message.find("\"a\""), std::string::npos);
  }
}

TEST(Coordinator, RefusesWhatNoHealthyRankSends) {
  const auto refusal = [](int rank, const Submissions& submissions) {
    Coordinator coordinator(options_for(2));
    const Status status = coordinator.submit(rank, submissions, TimePoint{});
    return status ? std::string("(accepted)") : status.error().message;
  };
  const auto with = [](const Request& request) {
    Submissions submissions;
    submissions.requests = {request};
    return submissions;
  };
  EXPECT_NE(refusal(2, {}), "(accepted)");
  EXPECT_NE(refusal(-1, {}), "(accepted)");
  EXPECT_NE(refusal(0, with(allreduce(""))), "(accepted)");
  EXPECT_NE(refusal(0, with(allreduce("a", {-1}))), "(accepted)");
  EXPECT_NE(refusal(0, with(request_for(OpKind::kJoin, "a"))), "(accepted)");
  EXPECT_NE(refusal(0, with(bundled(allreduce("a"), "", 2))), "(accepted)");
  EXPECT_NE(refusal(0, with(bundled(allreduce("a"), "g", 0))), "(accepted)");
  EXPECT_NE(refusal(0, {0, {1}, {}, false}), "(accepted)");
  EXPECT_NE(refusal(0, {1, {}, {}, false}), "(accepted)");
  EXPECT_EQ(refusal(0, with(allreduce("a"))), "(accepted)");
}

TEST(Coordinator, FusesWhatIsReadyTogether) {
  SimulatedRanks ranks(options_for(2));
  for (const char* name : {"a", "b", "c"}) ranks.submit_everywhere(allreduce(name));
  Request integers = allreduce("d");
  integers.type = DataType::kInt32;
  ranks.submit_everywhere(integers);
  ranks.settle();
  const auto& items = ranks.seen(0).items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].tensors.size(), 3u);
  EXPECT_EQ(items[1].tensors.size(), 1u);
}

TEST(Coordinator, WaitsALittleForMoreToFuse) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit_everywhere(allreduce("a"));
  ranks.submit(0, allreduce("b"));
  ranks.send_all();
  EXPECT_FALSE(ranks.plan());
  ASSERT_TRUE(ranks.coordinator().next_deadline().has_value());
  EXPECT_EQ(*ranks.coordinator().next_deadline(), ranks.now + milliseconds(1));
  ranks.now += microseconds(500);
  ranks.submit(1, allreduce("b"));
  ranks.send_all();
  EXPECT_TRUE(ranks.plan());
  EXPECT_EQ(ranks.last_plan().items.size(), 1u);
}

TEST(Coordinator, EndsTheWaitForMoreInTime) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit_everywhere(allreduce("a"));
  ranks.submit(0, allreduce("b"));
  ranks.send_all();
  ranks.now += milliseconds(1);
  EXPECT_TRUE(ranks.plan());
}

TEST(Coordinator, WaitsWhileSomethingRuns) {
  SimulatedRanks ranks(options_for(1));
  ranks.submit(0, allreduce("a"));
  ranks.send_all();
  EXPECT_FALSE(ranks.plan(false));
  EXPECT_TRUE(ranks.plan(true));
  ranks.submit(0, allreduce("b"));
  ranks.send_all();
  ranks.now += milliseconds(1);
  EXPECT_TRUE(ranks.plan(false));
  EXPECT_FALSE(ranks.coordinator().next_deadline().has_value());
}

TEST(Coordinator, DoesNotWaitForWhatCannotFuseOrIsFull) {
  CoordinatorOptions options = options_for(1);
  options.fusion_threshold = 32;
  SimulatedRanks ranks(options);
  ranks.submit(0, allreduce("a", {8}));
  ranks.send_all();
  EXPECT_TRUE(ranks.plan(false)) << "the threshold is reached";
  ranks.submit(0, request_for(OpKind::kBarrier, "b"));
  ranks.send_all();
  EXPECT_TRUE(ranks.plan(false)) << "a barrier gains nothing";
}

TEST(Coordinator, CutsWhatDoesNotFitAMessageIntoSeveralPlans) {
  SimulatedRanks ranks(options_for(1));
  const std::string long_name(1000, 'x');
  for (int i = 0; i < 9000; ++i) ranks.submit(0, allreduce(long_name + std::to_string(i), {1}));
  ranks.settle();
  EXPECT_GE(ranks.last_plan().number, 3u);
  EXPECT_EQ(ranks.seen(0).outcomes.size(), 9000u);
}

TEST(Coordinator, FailsWhatNeedsARankThatLeft) {
  SimulatedRanks ranks(options_for(3));
  ranks.submit_everywhere(allreduce("ready"));
  ranks.submit(0, allreduce("waiting"));
  ranks.submit(1, allreduce("waiting"));
  ranks.send_all();
  ranks.coordinator().leave(2, ranks.now);
  ranks.settle();
  EXPECT_EQ(ranks.error_everywhere("ready").code, ErrorCode::kShutdown);
  EXPECT_FALSE(ranks.ran("waiting", {0}));
  EXPECT_EQ(ranks.seen(0).outcomes.at("waiting").back().error->culprit, 2);
  EXPECT_EQ(ranks.seen(1).outcomes.at("waiting").size(), 1u);
  ranks.submit(0, allreduce("later"));
  ranks.settle();
  EXPECT_EQ(ranks.seen(0).outcomes.at("later").back().error->code, ErrorCode::kShutdown);
}

TEST(Coordinator, RefusesARankThatLeft) {
  SimulatedRanks ranks(options_for(2));
  ranks.coordinator().leave(1, ranks.now);
  ranks.coordinator().leave(1, ranks.now);
  ranks.coordinator().leave(7, ranks.now);
  EXPECT_FALSE(ranks.send(1).has_value());
  EXPECT_FALSE(ranks.plan());
}

}  // namespace
}  // namespace fasthorovod::core
