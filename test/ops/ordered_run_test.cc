// Operations that their callers run themselves (Engine::run), alone and together with ranks that
// submit the same ones: of real engines, as threads over the loopback, on one host and apart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;

enum class How {
  kRun,       // all ranks run all
  kMixed,     // odd ranks submit
  kChanging,  // each rank in turns of its own
};

core::Status submit_and_wait(Engine& engine, OrderedOperation operation) {
  return outcome(engine.submit_ordered(std::move(operation)));
}

class Caller {
 public:
  Caller(Engine& engine, How how) : engine_(engine), how_(how) {}

  core::Status operator()(OrderedOperation operation) {
    const int rank = engine_.world().rank;
    ++calls_;
    const bool submits =
        how_ == How::kMixed ? rank % 2 != 0 : how_ == How::kChanging && (calls_ >> rank) % 2 != 0;
    if (submits) return submit_and_wait(engine_, std::move(operation));
    return engine_.run(std::move(operation));
  }

 private:
  Engine& engine_;
  const How how_;
  int calls_ = 0;
};

void expect_success(const core::Status& status) {
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
}

void expect_failure(const core::Status& status, ErrorCode code,
                    const std::vector<std::string>& words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, code) << status.error().message;
  for (const std::string& word : words) {
    EXPECT_NE(status.error().message.find(word), std::string::npos)
        << status.error().message << "\nhas no: " << word;
  }
}

void expect_healthy(Engine& engine) {
  for (int round = 0; round < 3; ++round) {
    Floats values(50, 1.0F);
    expect_success(engine.run(call(OrderedKind::kAllreduce, values, values)));
    EXPECT_EQ(values, Floats(50, static_cast<float>(engine.world().size)));
  }
}

GroupOptions quiet(GroupOptions options) {
  options.quiet = true;
  return options;
}

enum class Where {
  kOneHost,
  kApart,  // a rank a host
  kPairs,  // two on each host, as far as there are so many
};

GroupOptions options_of(Where where) {
  GroupOptions options;
  if (where == Where::kApart) options.adjust = live_apart;
  if (where == Where::kPairs) options.adjust = live_in_pairs;
  return options;
}

// The least that the place is made of.
int fewest(Where where) { return where == Where::kPairs ? 3 : 2; }

std::vector<int> everybody(const Engine& engine) {
  std::vector<int> ranks(static_cast<std::size_t>(engine.world().size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool is_last(const Engine& engine) { return engine.world().rank == engine.world().size - 1; }

class RunAt : public ::testing::TestWithParam<std::tuple<int, Where, How>> {
 protected:
  static void run(const std::function<void(Engine&, Caller&)>& body) {
    const auto [ranks, where, how] = GetParam();
    run_as_threads(
        ranks,
        [&, how = how](Engine& engine) {
          Caller caller(engine, how);
          body(engine, caller);
        },
        options_of(where));
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, RunAt,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::Values(Where::kOneHost, Where::kApart),
                                            ::testing::Values(How::kRun, How::kMixed,
                                                              How::kChanging)));
INSTANTIATE_TEST_SUITE_P(
    Pairs, RunAt,
    ::testing::Combine(::testing::Values(3, 4, 7), ::testing::Values(Where::kPairs),
                       ::testing::Values(How::kRun, How::kMixed, How::kChanging)));

TEST_P(RunAt, ReducesEverywhere) {
  run([](Engine& engine, Caller& caller) {
    const auto size = static_cast<float>(engine.world().size);
    for (const std::size_t count : {0U, 1U, 7U, 1024U, 1001U, 20'000U, 262'144U}) {
      const Floats input(count, static_cast<float>(engine.world().rank + 1));
      Floats output(count);
      OrderedOperation sum = call(OrderedKind::kAllreduce, input, output);
      sum.prescale = 2;
      expect_success(caller(sum));
      EXPECT_EQ(output, Floats(count, size * (size + 1)));
      OrderedOperation average = call(OrderedKind::kAllreduce, input, output);
      average.reduction = core::Reduction::kAverage;
      expect_success(caller(average));
      EXPECT_EQ(output, Floats(count, (size + 1) / 2));
      Floats in_place = input;
      OrderedOperation most = call(OrderedKind::kAllreduce, in_place, in_place);
      most.reduction = core::Reduction::kMax;
      expect_success(caller(most));
      EXPECT_EQ(in_place, Floats(count, size));
    }
  });
}

TEST_P(RunAt, ManyInARow) {
  run([](Engine& engine, Caller& caller) {
    const auto size = static_cast<float>(engine.world().size);
    for (int i = 0; i < 300; ++i) {
      Floats values(static_cast<std::size_t>(1 + i * 37 % 3000), static_cast<float>(i));
      const OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
      expect_success(caller(sum));
      ASSERT_EQ(values, Floats(values.size(), size * static_cast<float>(i)));
    }
  });
}

TEST_P(RunAt, AllRanksGetTheSameBits) {
  run([](Engine& engine, Caller& caller) {
    for (const std::size_t count : {5U, 1000U, 40'000U}) {
      Floats values = numbers_of(engine.world().rank, count);
      expect_success(caller(call(OrderedKind::kAllreduce, values, values)));
      Floats all(count * static_cast<std::size_t>(engine.world().size));
      expect_success(caller(call(OrderedKind::kAllgather, values, all)));
      Floats expected;
      for (int rank = 0; rank < engine.world().size; ++rank) append(expected, values);
      EXPECT_EQ(std::memcmp(all.data(), expected.data(), all.size() * sizeof(float)), 0);
    }
  });
}

TEST_P(RunAt, OtherKindsToo) {
  run([](Engine& engine, Caller& caller) {
    const auto rank = static_cast<float>(engine.world().rank);
    const int size = engine.world().size;
    for (int root = 0; root < size; ++root) {
      Floats values(1000, rank);
      OrderedOperation broadcast = call(OrderedKind::kBroadcast, {}, values);
      broadcast.root = root;
      expect_success(caller(broadcast));
      EXPECT_EQ(values, Floats(1000, static_cast<float>(root)));
      expect_success(caller(call(OrderedKind::kBarrier, {}, none())));
    }
    Floats sent(static_cast<std::size_t>(size), rank);
    Floats received(static_cast<std::size_t>(size));
    expect_success(caller(call(OrderedKind::kAlltoall, sent, received)));
    for (int from = 0; from < size; ++from) {
      EXPECT_EQ(received[static_cast<std::size_t>(from)], static_cast<float>(from));
    }
  });
}

/// Kept alive by an operation: says on which thread that ended.
std::shared_ptr<void> tells_thread(std::thread::id& ended) {
  return {nullptr, [&ended](void*) { ended = std::this_thread::get_id(); }};
}

class RunWhere : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Hosts, RunWhere,
                         ::testing::Values(Where::kOneHost, Where::kApart, Where::kPairs));

TEST_P(RunWhere, ThreadsRunInGroupsOfTheirOwn) {
  run_as_threads(
      3,
      [](Engine& engine) {
        constexpr core::GroupId kGroups = 3;
        for (core::GroupId id = 1; id <= kGroups; ++id) {
          ASSERT_TRUE(engine.add_group(id, {2, 0, 1}));
        }
        std::vector<std::thread> threads;
        for (core::GroupId id = 1; id <= kGroups; ++id) {
          threads.emplace_back([&engine, id] {
            for (int i = 0; i < 100; ++i) {
              Floats values(100 * id, static_cast<float>(i));
              OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
              sum.group = id;
              expect_success(engine.run(sum));
              ASSERT_EQ(values, Floats(100 * id, static_cast<float>(3 * i)));
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, BesideOperationsThatWereSubmittedBefore) {
  run_as_threads(
      3,
      [](Engine& engine) {
        ASSERT_TRUE(engine.add_group(4, {0, 1, 2}));
        for (int round = 0; round < 10; ++round) {
          std::vector<Floats> queued(12, Floats(20'000, 1.0F));
          std::vector<core::Result<Handle>> handles;
          for (std::size_t i = 0; i < queued.size(); ++i) {
            OrderedOperation sum = call(OrderedKind::kAllreduce, queued[i], queued[i]);
            sum.group = i % 2 == 0 ? 4 : core::kWorldGroup;
            handles.push_back(engine.submit_ordered(sum));
          }
          Floats named(100, 1.0F);
          const auto negotiated = engine.submit(allreduce_of("named", named));
          Floats values(10, 2.0F);
          expect_success(engine.run(call(OrderedKind::kAllreduce, values, values)));
          EXPECT_EQ(values, Floats(10, 6.0F));
          testing::expect_success(negotiated);
          for (const auto& handle : handles) testing::expect_success(handle);
          for (const Floats& one : queued) EXPECT_EQ(one, Floats(20'000, 3.0F));
          EXPECT_EQ(named, Floats(100, 3.0F));
        }
      },
      options_of(GetParam()));
}

// Not the first ones, for which flows are opened.
TEST_P(RunWhere, TheCallerSeesItsOperationsToTheirEnd) {
  run_as_threads(
      4,
      [](Engine& engine) {
        int own = 0;
        for (int i = 0; i < 200; ++i) {
          Floats values(100, 1.0F);
          OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
          std::thread::id ended;
          sum.keep_alive = tells_thread(ended);
          expect_success(engine.run(std::move(sum)));
          if (ended == std::this_thread::get_id()) ++own;
        }
        EXPECT_GT(own, 0);
      },
      options_of(GetParam()));
}

// Long enough for the others to set up all that watches over an operation.
TEST_P(RunWhere, WaitsForALateRank) {
  run_as_threads(
      3,
      [](Engine& engine) {
        for (int round = 0; round < 4; ++round) {
          Floats values(100, 1.0F);
          if (engine.world().rank == round % 3) {
            std::this_thread::sleep_for(std::chrono::milliseconds(round == 3 ? 400 : 130));
          }
          expect_success(engine.run(call(OrderedKind::kAllreduce, values, values)));
          EXPECT_EQ(values, Floats(100, 3.0F));
        }
        expect_healthy(engine);
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, RanksThatDisagreeAreNamed) {
  run_as_threads(
      3,
      [](Engine& engine) {
        const bool odd = engine.world().rank == 1;
        Floats values(odd ? 200 : 100);
        const auto began = std::chrono::steady_clock::now();
        expect_failure(
            engine.run(call(OrderedKind::kAllreduce, values, values)), ErrorCode::kMismatch,
            {"rank 1 (host", "all_reduce of 200 float32, sum", "all_reduce of 100 float32, sum"});
        EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
        expect_failure(
            engine.run(call(odd ? OrderedKind::kBarrier : OrderedKind::kAllreduce, values, values)),
            ErrorCode::kMismatch, {"all_reduce of 100", "barrier"});
        expect_healthy(engine);
      },
      options_of(GetParam()));
}

// What is kept of small operations serves those of the same kind only.
TEST_P(RunWhere, SmallOnesOfManyKindsInTurns) {
  run_as_threads(
      3,
      [](Engine& engine) {
        ASSERT_TRUE(engine.add_group(3, {2, 0, 1}));
        for (int round = 0; round < 400; ++round) {
          Floats values(static_cast<std::size_t>(1 + round % 7 * 500), static_cast<float>(round));
          OrderedOperation operation = call(OrderedKind::kAllreduce, values, values);
          if (round % 2 != 0) operation.group = 3;
          const bool greatest = round % 5 == 0;
          if (greatest) operation.reduction = core::Reduction::kMax;
          expect_success(engine.run(operation));
          const auto expected = static_cast<float>(greatest ? round : 3 * round);
          ASSERT_EQ(values, Floats(values.size(), expected)) << round;
        }
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, RanksThatDisagreeAfterManyThatAgreedAreNamed) {
  run_as_threads(
      fewest(GetParam()),
      [](Engine& engine) {
        for (int round = 0; round < 3; ++round) {
          for (int i = 0; i < 20; ++i) expect_healthy(engine);
          Floats values(50, 1.0F);
          OrderedOperation operation = call(OrderedKind::kAllreduce, values, values);
          operation.title = "sum " + std::to_string(round);
          if (engine.world().rank == 1) operation.reduction = core::Reduction::kMax;
          expect_failure(engine.run(operation), ErrorCode::kMismatch,
                         {"all_reduce of 50 float32, sum", "all_reduce of 50 float32, max"});
        }
        expect_healthy(engine);
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, ATimeLimitAfterManyThatEndedNamesThisOne) {
  run_as_threads(
      fewest(GetParam()),
      [](Engine& engine) {
        for (int i = 0; i < 20; ++i) expect_healthy(engine);
        Floats values(50, 1.0F);
        OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
        sum.title = "the sum of my own";
        const std::string late = "rank " + std::to_string(engine.world().size - 1);
        if (!is_last(engine)) {
          sum.time_limit = std::chrono::milliseconds(150);
          expect_failure(engine.run(sum), ErrorCode::kTimedOut,
                         {"the sum of my own", "150 ms", late});
        }
        Floats gate(1);
        testing::expect_success(engine.submit(allreduce_of("gate", gate)));
        if (is_last(engine)) {
          expect_failure(engine.run(sum), ErrorCode::kTimedOut, {"150 ms"});
        }
        expect_healthy(engine);
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, TimeLimitsNameWhoIsLate) {
  run_as_threads(
      3,
      [](Engine& engine) {
        if (engine.world().rank != 2) {
          Floats values(100, 1.0F);
          OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
          sum.time_limit = std::chrono::milliseconds(150);
          expect_failure(engine.run(sum), ErrorCode::kTimedOut, {"150 ms", "rank 2"});
        }
        Floats gate(1);
        testing::expect_success(engine.submit(allreduce_of("gate", gate)));
        if (engine.world().rank == 2) {
          Floats values(100, 1.0F);
          expect_failure(engine.run(call(OrderedKind::kAllreduce, values, values)),
                         ErrorCode::kTimedOut, {"150 ms"});
        }
        expect_healthy(engine);
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, AGroupIsAbortedMeanwhile) {
  run_as_threads(
      fewest(GetParam()),
      [](Engine& engine) {
        ASSERT_TRUE(engine.add_group(3, everybody(engine)));
        if (!is_last(engine)) {
          Floats values(100, 1.0F);
          OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
          sum.group = 3;
          expect_failure(engine.run(sum), ErrorCode::kShutdown, {"removed group 3"});
        } else {
          engine.abort_group(3);
        }
        expect_healthy(engine);
      },
      options_of(GetParam()));
}

TEST_P(RunWhere, ShutdownEndsIt) {
  run_as_threads(
      fewest(GetParam()),
      [](Engine& engine) {
        Floats gate(1);
        expect_success(engine.run(call(OrderedKind::kAllreduce, gate, gate)));
        if (engine.world().rank != 0) {
          // Leaves last: the other one's operation needs it.
          Floats values(100, 1.0F);
          (void)engine.run(call(OrderedKind::kBarrier, {}, none()));
          (void)engine.run(call(OrderedKind::kAllreduce, values, values));
          return;
        }
        expect_success(engine.run(call(OrderedKind::kBarrier, {}, none())));
        ASSERT_TRUE(engine.add_group(3, everybody(engine)));
        std::atomic<bool> begins{false};
        std::thread waiting([&] {
          Floats values(100, 1.0F);
          OrderedOperation sum = call(OrderedKind::kAllreduce, values, values);
          sum.group = 3;  // nobody else calls it
          begins = true;
          expect_failure(engine.run(sum), ErrorCode::kShutdown, {});
        });
        while (!begins) std::this_thread::yield();
        engine.shutdown();
        waiting.join();
      },
      quiet(options_of(GetParam())));
}

TEST(OrderedRun, RefusesWhatCanNeverWork) {
  run_as_threads(1, [](Engine& engine) {
    Floats four(4);
    Floats five(5);
    expect_failure(engine.run(call(OrderedKind::kAllreduce, four, five)),
                   ErrorCode::kInvalidArgument, {"5 elements"});
    engine.shutdown();
    expect_failure(engine.run(call(OrderedKind::kAllreduce, four, four)), ErrorCode::kShutdown, {});
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
