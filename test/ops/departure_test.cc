// Ranks that leave in good order: what needs them fails alone, by name, and the others go on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <thread>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;

constexpr core::GroupId kOthers = 7;

OrderedOperation sum(Floats& values, core::GroupId group = core::kWorldGroup) {
  OrderedOperation operation = call(OrderedKind::kAllreduce, values, values);
  operation.group = group;
  return operation;
}

void add_group_without(Engine& engine, int missing) {
  std::vector<int> members;
  for (int rank = 0; rank < engine.world().size; ++rank) {
    if (rank != missing) members.push_back(rank);
  }
  ASSERT_TRUE(engine.add_group(kOthers, members));
}

void expect_others_go_on(Engine& engine) {
  for (int round = 0; round < 5; ++round) {
    Floats values(3000, 1.0F);
    expect_success(engine.submit_ordered(sum(values, kOthers)));
    EXPECT_EQ(values, Floats(3000, static_cast<float>(engine.world().size - 1)));
  }
}

class DepartureOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, DepartureOf, ::testing::Values(0, 1, 4));

// In a ring of five, two members are no neighbours of the rank that left.
TEST_P(DepartureOf, FailsWhatNeedsItAndNothingElse) {
  const int leaver = GetParam();
  const auto body = [leaver](Engine& engine) {
    Floats values(1000, 1.0F);
    expect_success(engine.submit_ordered(sum(values)));
    if (engine.world().rank == leaver) return;  // shuts down
    add_group_without(engine, leaver);
    for (int round = 0; round < 3; ++round) {
      OrderedOperation needing = sum(values);
      needing.time_limit = std::chrono::seconds(20);
      const core::Status status = outcome(engine.submit_ordered(needing));
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().culprit, leaver) << status.error().message;
      EXPECT_NE(status.error().message.find(fmt::format("rank {} (host", leaver)),
                std::string::npos)
          << status.error().message;
      expect_others_go_on(engine);
    }
  };
  run_as_threads(leaver == 0 ? 3 : 5, body);
}

TEST_P(DepartureOf, FailsWhatIsPendingWhenItLeaves) {
  const int leaver = GetParam();
  const auto body = [leaver](Engine& engine) {
    Floats values(100'000, 1.0F);
    expect_success(engine.submit_ordered(sum(values)));
    if (engine.world().rank == leaver) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return;
    }
    add_group_without(engine, leaver);
    expect_failure(
        engine.submit_ordered(sum(values)), ErrorCode::kShutdown,
        {fmt::format("rank {} (host", leaver), "all_reduce of 100000 float32", "has shut down"});
    expect_others_go_on(engine);
  };
  run_as_threads(leaver == 0 ? 3 : 5, body);
}

// No flow to it was ever opened.
TEST_P(DepartureOf, IsKnownWithoutAConnectionToIt) {
  const int leaver = GetParam();
  run_as_threads(leaver == 0 ? 3 : 5, [leaver](Engine& engine) {
    if (engine.world().rank == leaver) return;
    add_group_without(engine, leaver);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    Floats values(10, 1.0F);
    expect_failure(engine.submit_ordered(sum(values)), ErrorCode::kShutdown,
                   {fmt::format("rank {} (host", leaver), "has shut down"});
    expect_others_go_on(engine);
  });
}

TEST(Departure, LosesNothingThatWasSentBefore) {
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    run_as_threads(3, [](Engine& engine) {
      Floats values(200'000, 3.0F);
      OrderedOperation broadcast = call(OrderedKind::kBroadcast, {}, values);
      broadcast.root = 1;
      const auto handle = engine.submit_ordered(broadcast);
      expect_success(handle);  // the root leaves as soon as it has sent
      EXPECT_EQ(values, Floats(200'000, 3.0F));
    });
  }
}

TEST(Departure, FailsMessagesOfThatRankOnly) {
  run_as_threads(3, [](Engine& engine) {
    const int rank = engine.world().rank;
    Floats values(10, static_cast<float>(rank));
    expect_success(engine.submit_ordered(sum(values)));
    if (rank == 1) return;
    const auto message_to = [&values](int peer) {
      Message message;
      message.peer = peer;
      message.bytes = std::as_writable_bytes(std::span(values));
      return message;
    };
    expect_failure(engine.receive(message_to(1)), ErrorCode::kShutdown, {"rank 1 (host"});
    expect_failure(engine.send(message_to(1)), ErrorCode::kShutdown, {"rank 1 (host"});
    expect_success(rank == 0 ? engine.send(message_to(2)) : engine.receive(message_to(0)));
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
