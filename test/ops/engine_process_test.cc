#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <tuple>

#include "ops/engine.h"
#include "test/ops/aux_children.h"
#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {
namespace {

using Codes = std::vector<int>;

core::Status sum(Engine& engine, const std::string& name, std::vector<float>& values) {
  core::Result<Handle> handle = engine.submit(allreduce_of(name, values));
  if (!handle) return std::move(handle).error();
  if (!handle->wait_for(std::chrono::seconds(30)))
    return core::Error{core::ErrorCode::kTimedOut, "never completed"};
  return handle->wait();
}

core::Status ordered_sum(Engine& engine, std::vector<float>& values) {
  OrderedOperation operation;
  operation.output = std::as_writable_bytes(std::span(values));
  operation.input = operation.output;
  core::Result<Handle> handle = engine.submit_ordered(std::move(operation));
  if (!handle) return std::move(handle).error();
  if (!handle->wait_for(std::chrono::seconds(30)))
    return core::Error{core::ErrorCode::kTimedOut, "never completed"};
  return handle->wait();
}

TEST(EngineProcesses, SumAcrossRealProcessesWithDifferentLanes) {
  const Codes codes = run_as_processes(
      4,
      [](Engine& engine) {
        for (int step = 0; step < 20; ++step) {
          std::vector<float> values(200'003, static_cast<float>(engine.world().rank + step));
          const core::Status status = sum(engine, "gradient", values);
          ASSERT_TRUE(status) << status.error().message;
          EXPECT_EQ(values.front(), static_cast<float>(6 + 4 * step));
          EXPECT_EQ(values.back(), values.front());
        }
      },
      {.adjust = [](core::Config& config) {
        config.lanes = 1 + config.rank;
        live_apart(config);
      }});
  EXPECT_EQ(codes, Codes(4, 0));
}

void expect_only_killed(int victim, const Codes& codes) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(codes[static_cast<std::size_t>(rank)], rank == victim ? 128 + SIGKILL : 0)
        << "rank " << rank;
  }
}

// Every survivor names the rank that died, whichever it was, whatever it was doing: on one host, or
// with several lanes between hosts.
class KilledRank : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  [[nodiscard]] static int victim() { return std::get<0>(GetParam()); }
  [[nodiscard]] static GroupOptions options() {
    return {.adjust =
                [lanes = std::get<1>(GetParam())](core::Config& config) {
                  config.lanes = lanes;
                  if (lanes > 1) live_apart(config);
                },
            .quiet = true};
  }
};
INSTANTIATE_TEST_SUITE_P(Each, KilledRank,
                         ::testing::Combine(::testing::Values(0, 1, 2), ::testing::Values(1, 3)));

TEST_P(KilledRank, IsNamedByEverySurvivor) {
  const int victim = KilledRank::victim();
  const Codes codes = run_as_processes(
      3,
      [victim](Engine& engine) {
        std::vector<float> values(4'000'000, 1.0F);
        for (int step = 0; step < 10'000; ++step) {
          if (step == 5 && engine.world().rank == victim) kill(getpid(), SIGKILL);
          const core::Status status = sum(engine, "gradient", values);
          if (status) continue;
          EXPECT_EQ(status.error().culprit, victim) << status.error().message;
          EXPECT_NE(status.error().message.find(fmt::format("rank {}", victim)), std::string::npos)
              << status.error().message;
          return;
        }
        FAIL() << "nobody noticed";
      },
      options());
  expect_only_killed(victim, codes);
}

// The same through the ordered door, with a message that nobody will ever send.
TEST_P(KilledRank, IsNamedByEveryPendingOrderedOperation) {
  const int victim = KilledRank::victim();
  const auto body = [victim](Engine& engine) {
    const int rank = engine.world().rank;
    std::vector<float> values(1'000'000, 1.0F);
    std::vector<float> never(10);
    Message message;
    message.peer = -1;
    message.bytes = std::as_writable_bytes(std::span(never));
    const auto receiving = engine.receive(message);
    ASSERT_TRUE(receiving);
    for (int step = 0; step < 10'000; ++step) {
      if (step == 5 && rank == victim) kill(getpid(), SIGKILL);
      const core::Status status = ordered_sum(engine, values);
      if (status) continue;
      EXPECT_EQ(status.error().culprit, victim) << status.error().message;
      ASSERT_TRUE(receiving->wait_for(std::chrono::seconds(30)));
      const core::Status received = receiving->wait();
      ASSERT_FALSE(received);
      EXPECT_EQ(received.error().culprit, victim) << received.error().message;
      return;
    }
    FAIL() << "nobody noticed";
  };
  const Codes codes = run_as_processes(3, body, options());
  expect_only_killed(victim, codes);
}

// The same for callers that run their operations themselves.
RankBody runs_until_killed(int victim) {
  return [victim](Engine& engine) {
    std::vector<float> values(1000, 1.0F);
    OrderedOperation operation;
    operation.output = std::as_writable_bytes(std::span(values));
    operation.input = operation.output;
    for (int step = 0; step < 1'000'000; ++step) {
      if (step == 500 && engine.world().rank == victim) kill(getpid(), SIGKILL);
      const core::Status status = engine.run(operation);
      if (status) continue;
      EXPECT_EQ(status.error().culprit, victim) << status.error().message;
      return;
    }
    FAIL() << "nobody noticed";
  };
}

TEST_P(KilledRank, IsNamedToEveryCallerOfRun) {
  expect_only_killed(victim(), run_as_processes(3, runs_until_killed(victim()), options()));
}

// Those that share a host with it, and those that do not.
class KilledMate : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, KilledMate, ::testing::Range(0, 5));

TEST_P(KilledMate, IsNamedToEveryCallerOfRun) {
  const int victim = GetParam();
  expect_only_killed(victim, run_as_processes(5, runs_until_killed(victim),
                                              {.adjust = live_in_pairs, .quiet = true}));
}

// Rank 2 leaves in good order, rank 1 fails because of that and ends at once. Rank 0, which calls
// the operation only when it has heard of that end, must still name rank 2: the end of rank 1 is a
// consequence. In one host, and between hosts.
class Follower : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Each, Follower, ::testing::Values(false, true));

TEST_P(Follower, IsNotNamedByWhoComesLate) {
  const auto body = [](Engine& engine) {
    const int rank = engine.world().rank;
    std::vector<float> values(1000, 1.0F);
    Message never;
    never.peer = 1;
    never.bytes = std::as_writable_bytes(std::span(values));
    ASSERT_TRUE(ordered_sum(engine, values));
    if (rank == 2) return;
    if (rank == 0) {
      const auto receiving = engine.receive(never);
      ASSERT_TRUE(receiving);
      ASSERT_TRUE(receiving->wait_for(std::chrono::seconds(30)));
      EXPECT_EQ(receiving->wait().error().culprit, 1);
    }
    const core::Status status = ordered_sum(engine, values);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().culprit, 2) << status.error().message;
    EXPECT_EQ(status.error().code, core::ErrorCode::kShutdown);
    if (rank == 1) kill(getpid(), SIGKILL);
  };
  const auto adjust = [apart = GetParam()](core::Config& config) {
    if (apart) live_apart(config);
  };
  EXPECT_EQ(run_as_processes(3, body, {.adjust = adjust, .quiet = true}),
            (Codes{0, 128 + SIGKILL, 0}));
}

// A stopped process keeps its sockets and its kernel acknowledges: only the stall rule finds it,
// and everybody must name it, although in a ring each waits for a neighbour that only waits too.
class StoppedRank : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, StoppedRank, ::testing::Values(0, 1, 2));

TEST_P(StoppedRank, IsNamedOnceTheStallLimitHasPassed) {
  const int victim = GetParam();
  const auto body = [victim](Engine& engine) {
    std::vector<float> values(1'000'000, 1.0F);
    for (int step = 0; step < 100'000; ++step) {
      if (step == 5 && engine.world().rank == victim) raise(SIGSTOP);
      const core::Status status = sum(engine, "gradient", values);
      if (status) continue;
      if (engine.world().rank != victim) {
        EXPECT_EQ(status.error().culprit, victim) << status.error().message;
      }
      return;
    }
    FAIL() << "nobody noticed";
  };
  const auto adjust = [](core::Config& config) {
    config.stall_warning = std::chrono::seconds(1);
    config.stall_limit = std::chrono::seconds(2);
  };
  EXPECT_EQ(run_as_processes(3, body, {.adjust = adjust, .quiet = true}), Codes(3, 0));
}

// Nobody negotiates here, so that nobody notices but those whose operation does not move.
TEST_P(StoppedRank, IsNamedByThoseWhoWaitInAnOrderedOperation) {
  const int victim = GetParam();
  const auto body = [victim](Engine& engine) {
    std::vector<float> values(1'000'000, 1.0F);
    for (int step = 0; step < 100'000; ++step) {
      if (step == 5 && engine.world().rank == victim) raise(SIGSTOP);
      const core::Status status = ordered_sum(engine, values);
      if (status) continue;
      if (engine.world().rank != victim) {
        EXPECT_EQ(status.error().code, core::ErrorCode::kStalled);
        EXPECT_EQ(status.error().culprit, victim) << status.error().message;
      }
      return;
    }
    FAIL() << "nobody noticed";
  };
  const auto adjust = [](core::Config& config) { config.stall_limit = std::chrono::seconds(2); };
  EXPECT_EQ(run_as_processes(3, body, {.adjust = adjust, .quiet = true}), Codes(3, 0));
}

TEST_P(StoppedRank, IsNamedWhenItStopsInTheMiddleOfAnOperation) {
  const int victim = GetParam();
  const auto body = [victim](Engine& engine) {
    std::vector<float> values(16'000'000, 1.0F);
    core::Result<Handle> handle = engine.submit(allreduce_of("large", values));
    ASSERT_TRUE(handle);
    if (engine.world().rank == victim) {
      const timespec pause{0, 20'000'000};  // somewhere in the 64 MB
      nanosleep(&pause, nullptr);
      raise(SIGSTOP);
      (void)handle->wait();
      return;
    }
    ASSERT_TRUE(handle->wait_for(std::chrono::seconds(30)));
    std::vector<float> more(10, 1.0F);
    core::Status status = handle->wait();
    if (status) status = sum(engine, "next", more);  // it was through before the victim stopped
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().culprit, victim) << status.error().message;
  };
  const auto adjust = [](core::Config& config) { config.stall_limit = std::chrono::seconds(2); };
  EXPECT_EQ(run_as_processes(3, body, {.adjust = adjust, .quiet = true}), Codes(3, 0));
}

TEST_P(StoppedRank, GoesOnWithoutAnErrorWhenResumedInTime) {
  const int victim = GetParam();
  const auto body = [victim](Engine& engine) {
    std::vector<float> values(100'000, 1.0F);
    for (int step = 0; step < 10; ++step) {
      if (step == 5 && engine.world().rank == victim) {
        const pid_t self = getpid();
        if (fork() == 0) {  // wakes its parent after a while
          const timespec pause{0, 500'000'000};
          nanosleep(&pause, nullptr);
          kill(self, SIGCONT);
          _exit(0);
        }
        raise(SIGSTOP);
      }
      const core::Status status = sum(engine, "gradient", values);
      ASSERT_TRUE(status) << status.error().message;
    }
  };
  const auto adjust = [](core::Config& config) { config.stall_limit = std::chrono::seconds(20); };
  EXPECT_EQ(run_as_processes(3, body, {.adjust = adjust}), Codes(3, 0));
}

/// Two ranks on hosts of their own, which leave the choice to the engine: how many auxiliaries each
/// has, and that sums are right.
void expect_chosen(int cores, std::size_t auxiliaries) {
  const Codes codes = run_as_processes(2,
                                       [&](Engine& engine) {
                                         EXPECT_EQ(auxiliaries_of(getpid()).size(), auxiliaries);
                                         std::vector<float> values(300'007, 1.0F);
                                         const core::Status status =
                                             sum(engine, "gradient", values);
                                         ASSERT_TRUE(status) << status.error().message;
                                         EXPECT_EQ(values.front(), 2.0F);
                                         EXPECT_EQ(values.back(), 2.0F);
                                       },
                                       {.adjust =
                                            [&](core::Config& config) {
                                              live_apart(config);
                                              config.cores = cores;
                                            },
                                        .quiet = true});
  EXPECT_EQ(codes, Codes(2, 0));
}

TEST(EngineProcesses, HaveAuxiliariesByThemselvesOnlyWhereCoresAreToSpare) {
  put_auxiliary_on_path();
  expect_chosen(2, 0);
  expect_chosen(10, 1);
  expect_chosen(16, 2);
}

TEST(EngineProcesses, KeepTheirLanesWhenChosenAuxiliariesCanNotBeHad) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  expect_chosen(16, 0);
  setenv("PATH", path.c_str(), 1);
}

// A half-added chunk can not be undone, so the rank fails, and all name it and its auxiliary.
class HarmedAuxiliary : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Each, HarmedAuxiliary,
                         ::testing::Combine(::testing::Values(0, 1, 2),
                                            ::testing::Values(SIGKILL, SIGSTOP)));

TEST_P(HarmedAuxiliary, IsNamedByEveryRank) {
  put_auxiliary_on_path();
  const auto [victim, signal] = GetParam();
  const auto body = [victim = victim, signal = signal](Engine& engine) {
    std::vector<float> values(1'000'000, 1.0F);
    for (int step = 0; step < 10'000; ++step) {
      if (step == 5 && engine.world().rank == victim) {
        const auto auxiliaries = auxiliaries_of(getpid());
        ASSERT_EQ(auxiliaries.size(), 2U);
        kill(*auxiliaries.begin(), signal);
      }
      const core::Status status = sum(engine, "gradient", values);
      if (status) continue;
      const std::string& words = status.error().message;
      EXPECT_EQ(status.error().culprit, victim) << words;
      EXPECT_NE(words.find("auxiliary"), std::string::npos) << words;
      EXPECT_NE(words.find(fmt::format("rank {}", victim)), std::string::npos) << words;
      EXPECT_NE(words.find(signal == SIGKILL ? "killed by signal 9" : "did not answer for 8 s"),
                std::string::npos)
          << words;
      return;
    }
    FAIL() << "nobody noticed";
  };
  const auto adjust = [](core::Config& config) {
    live_apart(config);
    config.lanes = 3;
    config.auxiliaries = 2;
    config.flows = 1;
  };
  EXPECT_EQ(run_as_processes(3, body, {.adjust = adjust, .quiet = true}), Codes(3, 0));
}

}  // namespace
}  // namespace fasthorovod::ops::testing
