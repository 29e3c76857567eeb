// Groups at the coordinator: how they come and go, and that they do not touch one another.
#include <gtest/gtest.h>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

CoordinatorOptions options_for(int size) {
  CoordinatorOptions options;
  options.size = size;
  return options;
}

// Every rank submits; the id on which all agree, 0 when there is none.
GroupId added(SimulatedRanks& ranks, std::vector<int> members) {
  ranks.submit_everywhere(add_group("add", members));
  ranks.settle();
  for (const auto& [id, known] : ranks.seen(0).groups) {
    if (known == members) return id;
  }
  return kWorldGroup;
}

void submit(SimulatedRanks& ranks, const std::vector<int>& from, const Request& request) {
  for (const int rank : from) ranks.submit(rank, request);
}

TEST(Groups, AreKnownToAllRanksUnderOneNumber) {
  SimulatedRanks ranks(options_for(3));
  EXPECT_EQ(added(ranks, {0, 2}), 1u);
  EXPECT_EQ(added(ranks, {1}), 2u);
  const std::map<GroupId, std::vector<int>> expected{{1, {0, 2}}, {2, {1}}};
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.seen(rank).groups, expected);
  ranks.submit_everywhere(remove_group("remove", {0, 2}));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("remove"));
  EXPECT_EQ(added(ranks, {0, 2}), 3u) << "a number is never used again";
  ranks.expect_same_order();
}

TEST(Groups, WaitForTheirOwnRanksOnly) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 2});
  submit(ranks, {0, 2}, in_group(group, allreduce("a")));
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:a", {0, 2}));
  ranks.expect_same_order();
}

TEST(Groups, TakeTheSameNameForDifferentTensors) {
  SimulatedRanks ranks(options_for(3));
  const GroupId a = added(ranks, {0, 1});
  const GroupId b = added(ranks, {1, 2});
  for (int step = 0; step < 2; ++step) {
    submit(ranks, {0, 1}, in_group(a, allreduce("x", {4})));
    submit(ranks, {1, 2}, in_group(b, allreduce("x", {5})));
    ranks.submit_everywhere(allreduce("x", {6}));
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("x"));
    EXPECT_TRUE(ranks.ran("1:x", {0, 1}));
    EXPECT_TRUE(ranks.ran("2:x", {1, 2}));
  }
  EXPECT_EQ(ranks.bits_sent(), 7u) << "each is cached apart";
  ranks.expect_same_order();
}

TEST(Groups, FuseAmongThemselves) {
  SimulatedRanks ranks(options_for(2));
  const GroupId group = added(ranks, {1});
  ranks.submit_everywhere(allreduce("a"));
  ranks.submit(1, in_group(group, allreduce("b")));
  ranks.submit_everywhere(allreduce("c"));
  ranks.submit(1, in_group(group, allreduce("d")));
  ranks.send_all();
  ASSERT_TRUE(ranks.plan());
  ASSERT_EQ(ranks.last_plan().items.size(), 2u);
  for (const PlanItem& item : ranks.last_plan().items) EXPECT_EQ(item.tensors.size(), 2u);
}

TEST(Groups, DoNotKeepOneAnotherWaitingForMoreToFuse) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 1});
  ranks.submit(0, in_group(group, allreduce("slow")));
  ranks.submit_everywhere(allreduce("x"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("x"));
  ranks.submit(0, allreduce("half"));
  ranks.submit_everywhere(allreduce("x"));
  ranks.settle();
  EXPECT_TRUE(ranks.in_flight(0, "x")) << "the other tensor of the world may come at any time";
}

TEST(Groups, KeepTheirBundlesApart) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 1});
  submit(ranks, {0, 1}, in_group(group, bundled(allreduce("x"), "g", 2)));
  submit(ranks, {0, 1, 2}, bundled(allreduce("x"), "g", 1));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("x"));
  EXPECT_FALSE(ranks.ran("1:x", {0}));
  submit(ranks, {0, 1}, in_group(group, bundled(allreduce("y"), "g", 2)));
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:x", {0, 1}));
  EXPECT_TRUE(ranks.ran("1:y", {0, 1}));
}

TEST(Groups, FindDisagreementsAmongTheirRanks) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {1, 2});
  ranks.submit(1, in_group(group, allreduce("x", {1})));
  ranks.submit(2, in_group(group, allreduce("x", {2})));
  ranks.settle();
  EXPECT_EQ(ranks.error_on("1:x", {1, 2}).message,
            "tensor \"x (process set 1)\": ranks disagree about the shape: "
            "rank 1: float32 [1]; rank 2: float32 [2]");
}

TEST(Groups, RefuseARootOutsideOfThem) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {1, 2});
  submit(ranks, {1, 2}, in_group(group, request_for(OpKind::kBroadcast, "x")));
  ranks.settle();
  EXPECT_EQ(ranks.error_on("1:x", {1, 2}).message,
            "tensor \"x (process set 1)\": root 0 is not one of: rank 1, 2");
}

TEST(Groups, GatherTheRowsOfTheirRanks) {
  SimulatedRanks ranks(options_for(4));
  const GroupId group = added(ranks, {1, 3});
  for (int step = 0; step < 2; ++step) {
    for (const int rank : {1, 3}) {
      ranks.submit(rank, in_group(group, request_for(OpKind::kAllgather, "x", {rank, 2})));
    }
    ranks.settle();
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(ranks.seen(rank).items.back().tensors[0].first_dimensions,
                (std::vector<std::int64_t>{0, 1, 0, 3}));
    }
  }
  EXPECT_EQ(ranks.bits_sent(), 2u);
}

TEST(Groups, ThatCannotBeFailOnEveryRank) {
  SimulatedRanks ranks(options_for(3));
  added(ranks, {0, 1});
  const std::map<std::string, Request> refused{
      {"the ranks [0, 1] are a process set already, number 1", add_group("x", {0, 1})},
      {"the set of all ranks is there already: global_process_set", add_group("x", {0, 1, 2})},
      {"rank 3 is not one of the 3 ranks", add_group("x", {1, 3})},
      {"a process set needs at least one rank", add_group("x", {})},
      {"there is no process set of the ranks [1, 2]", remove_group("x", {1, 2})},
      {"the set of all ranks cannot be removed", remove_group("x", {0, 1, 2})}};
  for (const auto& [words, request] : refused) {
    ranks.submit_everywhere(request);
    ranks.settle();
    const Error error = ranks.error_everywhere("x");
    EXPECT_EQ(error.message, words);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(added(ranks, {2}), 2u) << "and the next one works";
}

TEST(Groups, AreBlamedOnARankThatCannotUseThem) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 1});
  for (const GroupId wrong : {group, GroupId{7}}) {
    ranks.submit(2, in_group(wrong, allreduce("x")));
    const Status status = ranks.send(2);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(status.error().culprit, 2);
  }
  Request odd = add_group("x", {1, 0});
  ranks.submit(0, odd);
  EXPECT_FALSE(ranks.send(0).has_value()) << "not in ascending order";
}

TEST(Groups, FailWhatIsPendingWhenTheyAreRemoved) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 1});
  ranks.submit(0, in_group(group, allreduce("x")));
  ranks.submit(0, in_group(group, bundled(allreduce("y"), "g", 1)));
  ranks.submit(2, allreduce("world"));
  ranks.settle();
  ranks.submit_everywhere(remove_group("remove", {0, 1}));
  ranks.settle();
  for (const char* key : {"1:x", "1:y"}) {
    const Error error = ranks.error_on(key, {0});
    EXPECT_EQ(error.code, ErrorCode::kShutdown);
    EXPECT_EQ(error.message, "process set 1 was removed");
  }
  // Rank 1 submitted before it heard of the end.
  ranks.submit(1, in_group(group, allreduce("x")));
  ranks.submit(1, in_group(group, bundled(allreduce("z"), "g", 2)));
  ranks.settle();
  EXPECT_EQ(ranks.error_on("1:x", {1}).code, ErrorCode::kShutdown);
  EXPECT_EQ(ranks.error_on("1:z", {1}).code, ErrorCode::kShutdown);
  ranks.submit(0, allreduce("world"));
  ranks.submit(1, allreduce("world"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("world"));
}

TEST(Groups, EndAfterWhatRunsInThem) {
  SimulatedRanks ranks(options_for(2));
  const GroupId group = added(ranks, {0});
  ranks.submit(0, in_group(group, allreduce("x")));
  ranks.submit_everywhere(remove_group("remove", {0}));
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:x", {0}));
  const auto& items = ranks.seen(0).items;
  ASSERT_GE(items.size(), 2u);
  EXPECT_EQ(items[items.size() - 2].op, OpKind::kAllreduce);
  EXPECT_EQ(items.back().op, OpKind::kRemoveGroup);
}

TEST(Groups, GoOnWithoutARankThatIsNotInThem) {
  SimulatedRanks ranks(options_for(3));
  const GroupId pair = added(ranks, {0, 1});
  const GroupId other = added(ranks, {1, 2});
  ranks.submit(0, in_group(pair, allreduce("x")));
  ranks.submit(1, in_group(other, allreduce("x")));
  ranks.submit(0, allreduce("x"));
  ranks.settle();
  ranks.coordinator().leave(2, ranks.now);
  ranks.settle();
  EXPECT_EQ(ranks.error_on("x", {0}).message, "rank 2 shut down");
  EXPECT_EQ(ranks.error_on("2:x", {1}).culprit, 2);
  EXPECT_TRUE(ranks.in_flight(0, "1:x"));
  ranks.submit(1, in_group(pair, allreduce("x")));
  ranks.submit(1, in_group(other, allreduce("y")));
  ranks.submit(0, add_group("late", {0}));
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:x", {0, 1}));
  EXPECT_EQ(ranks.error_on("2:y", {1}).code, ErrorCode::kShutdown);
  EXPECT_EQ(ranks.error_on("late", {0}).code, ErrorCode::kShutdown);
}

TEST(Groups, ReduceWithZerosOfARankThatJoined) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 1});
  ranks.submit(0, in_group(group, allreduce("x")));
  ranks.join(1);
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:x", {0}));
  ranks.submit(0, in_group(group, request_for(OpKind::kBarrier, "b")));
  ranks.settle();
  EXPECT_EQ(ranks.error_on("1:b", {0}).message,
            "tensor \"b (process set 1)\": rank 1 joined; until every rank has, only all-reduces "
            "run, no barrier");
  ranks.join(0);
  ranks.join(2);
  ranks.settle();
  ranks.submit(0, in_group(group, allreduce("x")));
  ranks.settle();
  EXPECT_TRUE(ranks.in_flight(0, "1:x")) << "rank 1 is active again";
  ranks.submit(1, in_group(group, allreduce("x")));
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:x", {0, 1}));
}

TEST(Groups, DoNotCareWhoJoinedElsewhere) {
  SimulatedRanks ranks(options_for(3));
  const GroupId group = added(ranks, {0, 1});
  ranks.join(2);
  ranks.submit(0, in_group(group, request_for(OpKind::kBroadcast, "x")));
  ranks.submit(1, in_group(group, request_for(OpKind::kBroadcast, "x")));
  ranks.settle();
  EXPECT_TRUE(ranks.ran("1:x", {0, 1}));
}

TEST(Groups, NameTheirOwnMissingRanksWhenTheyStall) {
  CoordinatorOptions options = options_for(4);
  options.stall_warning = std::chrono::seconds(1);
  options.stall_limit = std::chrono::seconds(10);
  SimulatedRanks ranks(options);
  const GroupId group = added(ranks, {1, 2, 3});
  ranks.submit(2, in_group(group, allreduce("x")));
  ranks.settle();
  ranks.now += std::chrono::seconds(2);
  const auto warnings = ranks.coordinator().take_warnings(ranks.now);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            "rank 1, 3 did not submit what other ranks wait for: \"x (process set 1)\" (2 s)");
  ranks.now += std::chrono::seconds(9);
  ranks.settle();
  const Error error = ranks.error_on("1:x", {2});
  EXPECT_EQ(error.code, ErrorCode::kStalled);
  EXPECT_EQ(error.culprit, 1);
  ranks.submit_everywhere(allreduce("world"));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("world"));
}

}  // namespace
}  // namespace fasthorovod::core
