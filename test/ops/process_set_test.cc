// Process sets of real engines, as threads over the loopback.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/ops/process_set_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;
using core::OpKind;

bool includes(const std::vector<int>& ranks, const Engine& engine) {
  return std::ranges::count(ranks, engine.world().rank) > 0;
}

TEST(ProcessSets, ReduceAmongTheirRanks) {
  run_as_threads(4, [](Engine& engine) {
    const std::vector<int> ranks{0, 2, 3};
    const core::GroupId set = add_set(engine, "add", ranks);
    EXPECT_EQ(set, 1u);
    if (!includes(ranks, engine)) return;
    for (const std::size_t count : {0u, 1u, 7u, 300'000u}) {
      Floats values(count, static_cast<float>(engine.world().rank));
      Submission average = allreduce_in(set, "x", values);
      average.request.reduction = core::Reduction::kAverage;
      expect_success(engine.submit(std::move(average)));
      EXPECT_EQ(values, Floats(count, 5.0F / 3));
    }
  });
}

Submission barrier_in(core::GroupId set) {
  Submission barrier;
  barrier.request.op = OpKind::kBarrier;
  barrier.request.name = "barrier";
  barrier.request.group = set;
  return barrier;
}

TEST(ProcessSets, GatherBroadcastAndMeetAmongTheirRanks) {
  run_as_threads(4, [](Engine& engine) {
    const std::vector<int> ranks{1, 3};
    const core::GroupId set = add_set(engine, "add", ranks);
    // Rank 0 coordinates: it must not leave before.
    if (!includes(ranks, engine)) return expect_success(engine.submit(barrier_in(0)));
    const int rank = engine.world().rank;
    Floats own(static_cast<std::size_t>(rank), static_cast<float>(rank));
    Floats gathered;
    Submission gather = allreduce_in(set, "gather", own);
    gather.request.op = OpKind::kAllgather;
    gather.output = nullptr;
    gather.allocate_output = [&](const std::vector<std::int64_t>& shape) -> core::Result<void*> {
      gathered.resize(static_cast<std::size_t>(shape.front()));
      return static_cast<void*>(gathered.data());
    };
    expect_success(engine.submit(std::move(gather)));
    EXPECT_EQ(gathered, (Floats{1, 3, 3, 3}));
    for (const int root : ranks) {
      Floats values(200'000, static_cast<float>(rank));
      Submission broadcast = allreduce_in(set, "broadcast", values);
      broadcast.request.op = OpKind::kBroadcast;
      broadcast.request.root = root;
      expect_success(engine.submit(std::move(broadcast)));
      EXPECT_EQ(values, Floats(200'000, static_cast<float>(root)));
    }
    expect_success(engine.submit(barrier_in(set)));
    expect_success(engine.submit(barrier_in(0)));
  });
}

TEST(ProcessSets, RunWhileTheWorldWaits) {
  run_as_threads(3, [](Engine& engine) {
    const std::vector<int> ranks{0, 1};
    const core::GroupId set = add_set(engine, "add", ranks);
    const core::GroupId last = add_set(engine, "last", {1, 2});
    Floats all(1000, 1.0F);
    Floats own(1000, 1.0F);
    if (includes(ranks, engine)) {
      const auto waiting = engine.submit(allreduce_of("x", all));
      expect_success(engine.submit(allreduce_in(set, "x", own)));
      EXPECT_EQ(own, Floats(1000, 2.0F));
      if (engine.world().rank == 1) {
        EXPECT_TRUE(waiting && !waiting->done()) << "rank 2 has not submitted it";
        expect_success(engine.submit(allreduce_in(last, "x", own)));
      }
      expect_success(waiting);
    } else {
      expect_success(engine.submit(allreduce_in(last, "x", own)));
      expect_success(engine.submit(allreduce_of("x", all)));
    }
    EXPECT_EQ(all, Floats(1000, 3.0F));
  });
}

TEST(ProcessSets, AreRefusedWhereTheyCannotBeUsed) {
  run_as_threads(3, [](Engine& engine) {
    const core::GroupId set = add_set(engine, "add", {0, 1});
    Floats values(4);
    if (engine.world().rank == 2) {
      expect_failure(engine.submit(allreduce_in(set, "x", values)), ErrorCode::kInvalidArgument,
                     {"'x'", "rank 2 is not in process set 1", "[0, 1]"});
    } else {
      Submission broadcast = allreduce_in(set, "x", values);
      broadcast.request.op = OpKind::kBroadcast;
      broadcast.request.root = 2;
      expect_failure(engine.submit(std::move(broadcast)), ErrorCode::kInvalidArgument,
                     {"root 2 is not one of the ranks [0, 1]"});
    }
    expect_failure(engine.submit(allreduce_in(7, "x", values)), ErrorCode::kInvalidArgument,
                   {"process set 7 is not registered"});
    expect_failure(change_sets(engine, OpKind::kAddGroup, "odd", {1, 0}),
                   ErrorCode::kInvalidArgument, {"[1, 0]", "ascending"});
    expect_failure(change_sets(engine, OpKind::kAddGroup, "again", {0, 1}),
                   ErrorCode::kInvalidArgument, {"[0, 1] are a process set already, number 1"});
    expect_failure(change_sets(engine, OpKind::kAddGroup, "far", {2, 3}),
                   ErrorCode::kInvalidArgument, {"rank 3 is not one of the 3 ranks"});
  });
}

TEST(ProcessSets, AboutWhoseRanksRanksDisagreeFailEverywhere) {
  run_as_threads(3, [](Engine& engine) {
    const std::vector<int> ranks = engine.world().rank == 1 ? std::vector{1, 2} : std::vector{0, 1};
    expect_failure(change_sets(engine, OpKind::kAddGroup, "add", ranks), ErrorCode::kMismatch,
                   {"disagree about the ranks", "rank 0, 2: [0, 1]", "rank 1: [1, 2]"});
    add_set(engine, "add", {1, 2});
  });
}

TEST(ProcessSets, CanBeRemovedAndMadeAgain) {
  run_as_threads(3, [](Engine& engine) {
    for (core::GroupId expected = 1; expected < 20; ++expected) {
      const core::GroupId set = add_set(engine, "add", {0, 2});
      EXPECT_EQ(set, expected);
      Floats values(5000, 1.0F);
      core::Result<Handle> handle =
          engine.world().rank == 1 ? change_sets(engine, OpKind::kRemoveGroup, "remove", {0, 2})
                                   : engine.submit(allreduce_in(set, "x", values));
      if (engine.world().rank != 1) {
        expect_success(change_sets(engine, OpKind::kRemoveGroup, "remove", {0, 2}));
        EXPECT_TRUE(handle && handle->done()) << "a set ends after what runs in it";
        EXPECT_EQ(values, Floats(5000, 2.0F));
      }
      expect_success(handle);
      expect_failure(engine.submit(allreduce_in(set, "x", values)), ErrorCode::kInvalidArgument,
                     {fmt::format("process set {} is not registered", set)});
    }
  });
}

TEST(ProcessSets, GoOnWhenARankOutsideShutsDown) {
  run_as_threads(3, [](Engine& engine) {
    const core::GroupId set = add_set(engine, "add", {0, 1});
    if (engine.world().rank == 2) return engine.shutdown();
    for (int step = 0; step < 200; ++step) {
      Floats values(1000, 1.0F);
      expect_success(engine.submit(allreduce_in(set, "x", values)));
      EXPECT_EQ(values, Floats(1000, 2.0F));
    }
    Floats values(4);
    expect_failure(engine.submit(allreduce_of("all", values)), ErrorCode::kShutdown, {"rank 2"});
    // Both have seen it before the first of them leaves.
    expect_success(engine.submit(allreduce_in(set, "last", values)));
  });
}

TEST(ProcessSets, TakeZerosFromARankThatJoined) {
  run_as_threads(3, [](Engine& engine) {
    const core::GroupId set = add_set(engine, "add", {0, 1});
    Submission join;
    join.request.op = OpKind::kJoin;
    join.request.name = "join";
    if (engine.world().rank == 0) {
      for (int step = 0; step < 20; ++step) {
        Floats values(1000, 3.0F);
        expect_success(engine.submit(allreduce_in(set, "x", values)));
        EXPECT_EQ(values.front(), step == 0 ? 4.0F : 3.0F);
      }
    } else if (engine.world().rank == 1) {
      Floats values(1000, 1.0F);
      expect_success(engine.submit(allreduce_in(set, "x", values)));
    }
    expect_success(engine.submit(std::move(join)));
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
