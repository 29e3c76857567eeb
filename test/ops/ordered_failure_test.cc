// Operations of the ordered door that fail: who learns of it, in what words, and that the next one
// works.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;

void expect_healthy(Engine& engine) {
  Floats values(50, 1.0F);
  expect_success(engine.submit_ordered(call(OrderedKind::kAllreduce, values, values)));
  EXPECT_EQ(values, Floats(50, static_cast<float>(engine.world().size)));
}

TEST(OrderedMismatch, OfSizesNamesBothSides) {
  run_as_threads(3, [](Engine& engine) {
    Floats values(engine.world().rank == 1 ? 200 : 100);
    expect_failure(
        engine.submit_ordered(call(OrderedKind::kAllreduce, values, values)), ErrorCode::kMismatch,
        {"rank 1 (host", "all_reduce of 200 float32, sum", "all_reduce of 100 float32, sum"});
    expect_healthy(engine);
  });
}

TEST(OrderedMismatch, OfTypesAndReductions) {
  run_as_threads(2, [](Engine& engine) {
    Floats values(100);
    OrderedOperation typed = call(OrderedKind::kAllreduce, values, values);
    if (engine.world().rank == 1) typed.type = core::DataType::kInt32;
    expect_failure(engine.submit_ordered(typed), ErrorCode::kMismatch, {"int32", "float32"});
    OrderedOperation reducing = call(OrderedKind::kAllreduce, values, values);
    if (engine.world().rank == 1) reducing.reduction = core::Reduction::kMax;
    expect_failure(engine.submit_ordered(reducing), ErrorCode::kMismatch, {"sum", "max"});
    expect_healthy(engine);
  });
}

TEST(OrderedMismatch, OfRootsAndKinds) {
  run_as_threads(2, [](Engine& engine) {
    Floats values(100);
    OrderedOperation broadcast = call(OrderedKind::kBroadcast, {}, values);
    broadcast.root = engine.world().rank;
    expect_failure(engine.submit_ordered(broadcast), ErrorCode::kMismatch, {"root 0", "root 1"});
    const bool first = engine.world().rank == 0;
    expect_failure(engine.submit_ordered(call(
                       first ? OrderedKind::kAllreduce : OrderedKind::kBarrier, values, values)),
                   ErrorCode::kMismatch, {"all_reduce of 100", "barrier"});
    expect_healthy(engine);
  });
}

TEST(OrderedMismatch, OfExchangedBlocks) {
  run_as_threads(2, [](Engine& engine) {
    const bool first = engine.world().rank == 0;
    Floats input(2);
    Floats output(3);
    OrderedOperation exchange = call(OrderedKind::kAlltoall, input, output);
    exchange.blocks = {1, 1};
    exchange.received_blocks =
        first ? std::vector<std::uint64_t>{1, 2} : std::vector<std::uint64_t>{2, 1};
    expect_failure(engine.submit_ordered(exchange), ErrorCode::kMismatch, {"all_to_all"});
    expect_healthy(engine);
  });
}

TEST(OrderedMismatch, FailsWhatIsCalledLater) {
  run_as_threads(3, [](Engine& engine) {
    const int rank = engine.world().rank;
    Floats values(rank == 0 ? 10 : 20);
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto began = std::chrono::steady_clock::now();
    expect_failure(engine.submit_ordered(call(OrderedKind::kAllreduce, values, values)),
                   ErrorCode::kMismatch, {"of 10 float32", "of 20 float32"});
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
    expect_healthy(engine);
  });
}

// A rank whose part was empty had ended; its next call gets the error and starts nothing.
TEST(OrderedMismatch, ReachesWhoHadFinishedOnTheNextCall) {
  run_as_threads(2, [](Engine& engine) {
    Floats values(engine.world().rank == 0 ? 0 : 10);
    const auto handle = engine.submit_ordered(call(OrderedKind::kAllreduce, values, values));
    if (engine.world().rank == 0) {
      expect_success(handle);
    } else {
      expect_failure(handle, ErrorCode::kMismatch, {"of 0 float32", "of 10 float32"});
    }
    // Until the other rank's word is here, calls of rank 0 would just go on. The first operation is
    // over on rank 1 when it has sent the word, the second one passes the coordinator behind it.
    for (const char* name : {"first", "second"}) {
      Floats gate(1);
      expect_success(engine.submit(allreduce_of(name, gate)));
    }
    if (engine.world().rank == 0) {
      Floats one(50);
      expect_failure(engine.submit_ordered(call(OrderedKind::kAllreduce, one, one)),
                     ErrorCode::kMismatch, {"of 0 float32", "of 10 float32"});
    }
    expect_healthy(engine);
  });
}

TEST(OrderedMismatch, LeavesOtherGroupsAlone) {
  run_as_threads(3, [](Engine& engine) {
    ASSERT_TRUE(engine.add_group(5, {0, 1, 2}));
    const auto count = static_cast<std::size_t>(engine.world().rank) + 1;
    for (int round = 0; round < 10; ++round) {
      Floats wrong(count);
      Floats right(5000, 1.0F);
      OrderedOperation healthy = call(OrderedKind::kAllreduce, right, right);
      healthy.group = 5;
      const auto failing = engine.submit_ordered(call(OrderedKind::kAllreduce, wrong, wrong));
      expect_success(engine.submit_ordered(healthy));
      expect_failure(failing, ErrorCode::kMismatch, {});
    }
    expect_healthy(engine);
  });
}

TEST(OrderedTimeLimit, NamesTheRankThatDidNotCome) {
  run_as_threads(4, [](Engine& engine) {
    const int rank = engine.world().rank;
    Floats values(1000, 1.0F);
    OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
    sum.title = "the gradient";
    sum.time_limit = std::chrono::milliseconds(400);
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    expect_failure(engine.submit_ordered(sum), ErrorCode::kTimedOut,
                   {"the gradient", "400 ms", "not ready: rank 2 (host"});
    expect_healthy(engine);
  });
}

TEST(OrderedTimeLimit, IsNotFeltWhenItIsKept) {
  run_as_threads(2, [](Engine& engine) {
    for (int i = 0; i < 50; ++i) {
      Floats values(100, 1.0F);
      OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
      sum.time_limit = std::chrono::seconds(60);
      expect_success(engine.submit_ordered(sum));
    }
  });
}

TEST(OrderedGroups, RemovalFailsWhatIsPending) {
  run_as_threads(2, [](Engine& engine) {
    ASSERT_TRUE(engine.add_group(3, {0, 1}));
    Floats values(100);
    OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
    sum.group = 3;
    if (engine.world().rank == 0) {
      const auto pending = engine.submit_ordered(sum);
      engine.remove_group(3);
      expect_failure(pending, ErrorCode::kShutdown, {"removed group 3"});
      EXPECT_FALSE(engine.submit_ordered(sum));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      expect_failure(engine.submit_ordered(sum), ErrorCode::kShutdown, {"removed group 3"});
      engine.remove_group(3);
    }
    expect_healthy(engine);
  });
}

TEST(OrderedGroups, AbortIsFeltByWhoCallsLater) {
  run_as_threads(3, [](Engine& engine) {
    ASSERT_TRUE(engine.add_group(3, {0, 1, 2}));
    Floats values(100, 1.0F);
    OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
    sum.group = 3;
    expect_success(engine.submit_ordered(sum));
    if (engine.world().rank == 1) {
      engine.abort_group(3);
      return expect_healthy(engine);
    }
    for (int i = 0; i < 10; ++i) {
      expect_failure(engine.submit_ordered(sum), ErrorCode::kShutdown, {"rank 1", "removed group"});
    }
    Message message;
    message.group = 3;
    message.peer = 1;
    message.bytes = std::as_writable_bytes(std::span(values));
    expect_failure(engine.receive(message), ErrorCode::kShutdown, {"rank 1", "removed group"});
    engine.abort_group(3);
    expect_healthy(engine);
  });
}

TEST(OrderedShutdown, CompletesEveryHandle) {
  run_as_threads(
      2,
      [](Engine& engine) {
        if (engine.world().rank == 1) return;
        Floats values(100);
        const auto alone = engine.submit_ordered(call(OrderedKind::kAllreduce, values, values));
        engine.shutdown();
        EXPECT_FALSE(outcome(alone));
        EXPECT_FALSE(engine.submit_ordered(call(OrderedKind::kAllreduce, values, values)));
      },
      {.quiet = true});
}

}  // namespace
}  // namespace fasthorovod::ops::testing
