#include "ops/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <random>

#include "compression/instruction_set.h"
#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;

// The sum over all ranks of (at_rank_zero + rank).
float sum_over_ranks(int size, float at_rank_zero) {
  float sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += at_rank_zero + static_cast<float>(rank);
  return sum;
}

class EngineAt : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, EngineAt, ::testing::Values(1, 2, 3, 5));

TEST_P(EngineAt, SumsOnEveryRank) {
  run_as_threads(GetParam(), [](Engine& engine) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{300'000}}) {
      std::vector<float> values(count, static_cast<float>(engine.world().rank) + 1.0F);
      expect_success(engine.submit(allreduce_of(fmt::format("sum.{}", count), values)));
      const float expected = sum_over_ranks(engine.world().size, 1.0F);
      EXPECT_EQ(std::count(values.begin(), values.end(), expected),
                static_cast<std::ptrdiff_t>(count));
    }
  });
}

TEST(Engine, UsesTheInstructionSetOfItsSettings) {
  core::Config config;
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  config.simd = "scalar";
  ASSERT_TRUE(Engine::start(config, 0, log));
  EXPECT_EQ(compression::instruction_set(), "scalar");
  config.simd = "auto";
  ASSERT_TRUE(Engine::start(config, 0, log));
  EXPECT_EQ(compression::instruction_set(), compression::instruction_sets().front());
}

TEST(Engine, RefusesAnInstructionSetThatIsNotThere) {
  core::Config config;
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  config.simd = "avx1024";
  const auto engine = Engine::start(config, 0, log);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(engine.error().message.starts_with("FASTHOROVOD_SIMD")) << engine.error().message;
}

TEST_P(EngineAt, AveragesAndScales) {
  run_as_threads(GetParam(), [](Engine& engine) {
    std::vector<float> values(1000, static_cast<float>(engine.world().rank));
    Submission submission = allreduce_of("average", values, core::Reduction::kAverage);
    submission.request.prescale = 2.0;
    submission.request.postscale = 3.0;
    expect_success(engine.submit(std::move(submission)));
    const auto size = static_cast<float>(engine.world().size);
    EXPECT_FLOAT_EQ(values.front(), 6.0F * (size - 1) / 2);
    EXPECT_FLOAT_EQ(values.back(), values.front());
  });
}

TEST_P(EngineAt, AveragesIntegersExactly) {
  run_as_threads(GetParam(), [](Engine& engine) {
    std::vector<std::int64_t> values{49, -49, 1};
    Submission submission;
    submission.request.name = "integers";
    submission.request.type = core::DataType::kInt64;
    submission.request.reduction = core::Reduction::kAverage;
    submission.request.shape = {3};
    submission.input = submission.output = values.data();
    expect_success(engine.submit(std::move(submission)));
    EXPECT_EQ(values, (std::vector<std::int64_t>{49, -49, 1}));
  });
}

TEST_P(EngineAt, FusesManyTensorsSubmittedInAnyOrder) {
  constexpr int kTensors = 500;
  run_as_threads(GetParam(), [](Engine& engine) {
    const int rank = engine.world().rank;
    std::vector<int> order(kTensors);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank)));
    for (int round = 0; round < 3; ++round) {
      std::vector<std::vector<float>> tensors(kTensors);
      std::vector<core::Result<Handle>> handles;
      for (const int i : order) {
        tensors[static_cast<std::size_t>(i)].assign(static_cast<std::size_t>(i % 13),
                                                    static_cast<float>(i + rank));
        handles.push_back(engine.submit(
            allreduce_of(fmt::format("t{}", i), tensors[static_cast<std::size_t>(i)])));
      }
      for (const auto& handle : handles) expect_success(handle);
      for (int i = 0; i < kTensors; ++i) {
        for (const float value : tensors[static_cast<std::size_t>(i)]) {
          ASSERT_EQ(value, sum_over_ranks(engine.world().size, static_cast<float>(i)))
              << "tensor " << i;
        }
      }
    }
    EXPECT_LT(engine.statistics().operations, 3 * kTensors);
    EXPECT_GT(engine.statistics().cache_hits, 0U);
  });
}

TEST_P(EngineAt, GathersBlocksOfDifferentLengths) {
  run_as_threads(GetParam(), [](Engine& engine) {
    const int rank = engine.world().rank;
    const int size = engine.world().size;
    const std::vector<float> own(static_cast<std::size_t>(rank) * 2, static_cast<float>(rank));
    std::vector<float> gathered;
    Submission submission;
    submission.request.name = "gather";
    submission.request.op = core::OpKind::kAllgather;
    submission.request.shape = {rank, 2};
    submission.input = own.data();
    submission.allocate_output =
        [&gathered](const std::vector<std::int64_t>& shape) -> core::Result<void*> {
      gathered.resize(core::element_count(shape));
      return static_cast<void*>(gathered.data());
    };
    expect_success(engine.submit(std::move(submission)));
    std::vector<float> expected;
    for (int from = 0; from < size; ++from)
      expected.insert(expected.end(), static_cast<std::size_t>(from) * 2, static_cast<float>(from));
    EXPECT_EQ(gathered, expected);
  });
}

TEST_P(EngineAt, BroadcastsFromEveryRoot) {
  run_as_threads(GetParam(), [](Engine& engine) {
    for (int root = 0; root < engine.world().size; ++root) {
      for (const std::size_t count : {std::size_t{3}, std::size_t{100'000}}) {
        std::vector<float> values(count, static_cast<float>(engine.world().rank));
        Submission submission = allreduce_of(fmt::format("broadcast.{}.{}", root, count), values);
        submission.request.op = core::OpKind::kBroadcast;
        submission.request.root = root;
        expect_success(engine.submit(std::move(submission)));
        EXPECT_EQ(std::count(values.begin(), values.end(), static_cast<float>(root)),
                  static_cast<std::ptrdiff_t>(count));
      }
    }
  });
}

TEST_P(EngineAt, BarrierComesAfterWhatWasSubmittedBefore) {
  run_as_threads(GetParam(), [](Engine& engine) {
    std::vector<float> values(1'000'000, 1.0F);
    const auto before = engine.submit(allreduce_of("before", values));
    Submission barrier;
    barrier.request.name = "barrier";
    barrier.request.op = core::OpKind::kBarrier;
    const auto handle = engine.submit(std::move(barrier));
    expect_success(handle);
    ASSERT_TRUE(before);
    EXPECT_TRUE(before->done());
  });
}

TEST_P(EngineAt, CallsWhatFollowsAResultBeforeItsHandleIsDone) {
  run_as_threads(GetParam(), [](Engine& engine) {
    // A bundle is fused: each of its tensors has its result when what follows it is called.
    std::vector<std::vector<float>> tensors(3, std::vector<float>(5, 1.0F));
    std::vector<float> seen;
    std::vector<Submission> members;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      members.push_back(allreduce_of(fmt::format("t{}", i), tensors[i]));
      members.back().then = [&seen, &values = tensors[i]] { seen.push_back(values.back()); };
    }
    const auto handles = engine.submit_bundle("bundle", std::move(members));
    ASSERT_TRUE(handles);
    for (const Handle& handle : *handles) expect_success(handle);
    EXPECT_EQ(seen, std::vector<float>(3, static_cast<float>(engine.world().size)));
  });
}

TEST(Engine, DoesNotCallWhatFollowsAResultThatThereIsNot) {
  run_as_threads(2, [](Engine& engine) {
    std::vector<float> values(engine.world().rank == 0 ? 4 : 5);
    bool called = false;
    Submission submission = allreduce_of("unequal", values);
    submission.then = [&called] { called = true; };
    EXPECT_FALSE(outcome(engine.submit(std::move(submission))));
    EXPECT_FALSE(called);
  });
}

TEST(Engine, ReportsAMismatchEverywhereAndGoesOn) {
  run_as_threads(3, [](Engine& engine) {
    const std::size_t count = engine.world().rank == 1 ? 5 : 4;
    std::vector<float> values(count, 1.0F);
    const core::Status status = outcome(engine.submit(allreduce_of("layer", values)));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
    EXPECT_NE(status.error().message.find("layer"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("[5]"), std::string::npos) << status.error().message;
    std::vector<float> again(4, 1.0F);
    expect_success(engine.submit(allreduce_of("layer", again)));
    EXPECT_EQ(again, std::vector<float>(4, 3.0F));
  });
}

TEST(Engine, RefusesADuplicateNameAtOnce) {
  run_as_threads(2, [](Engine& engine) {
    std::vector<float> first(4, 1.0F);
    std::vector<float> second(4, 1.0F);
    std::vector<float> gate(1, 1.0F);
    if (engine.world().rank == 0) {
      const auto handle = engine.submit(allreduce_of("twice", first));
      const auto duplicate = engine.submit(allreduce_of("twice", second));
      ASSERT_FALSE(duplicate);
      EXPECT_EQ(duplicate.error().code, ErrorCode::kDuplicateName);
      expect_success(engine.submit(allreduce_of("gate", gate)));
      expect_success(handle);
    } else {
      expect_success(engine.submit(allreduce_of("gate", gate)));
      expect_success(engine.submit(allreduce_of("twice", first)));
    }
  });
}

TEST(Engine, LetsARankJoinWithZeros) {
  run_as_threads(3, [](Engine& engine) {
    const int rank = engine.world().rank;
    for (int step = 0; step <= rank; ++step) {
      std::vector<float> values(10, 1.0F);
      expect_success(engine.submit(allreduce_of("step", values)));
      EXPECT_EQ(values.front(), static_cast<float>(3 - step));
    }
    Submission join;
    join.request.name = "join";
    join.request.op = core::OpKind::kJoin;
    const auto handle = engine.submit(std::move(join));
    expect_success(handle);
    EXPECT_EQ(handle->last_joined(), 2);
  });
}

TEST(Engine, FailsWhatNeedsARankThatHasShutDown) {
  run_as_threads(3,
                 [](Engine& engine) {
                   std::vector<float> values(10, 1.0F);
                   expect_success(engine.submit(allreduce_of("together", values)));
                   if (engine.world().rank == 1) return;  // shuts down
                   const core::Status status =
                       outcome(engine.submit(allreduce_of("alone", values)));
                   ASSERT_FALSE(status);
                   EXPECT_EQ(status.error().code, ErrorCode::kShutdown);
                   EXPECT_EQ(status.error().culprit, 1);
                   EXPECT_NE(status.error().message.find("shut down"), std::string::npos)
                       << status.error().message;
                 },
                 {.quiet = true});
}

TEST(Engine, NamesTheFirstToLeaveAfterTheCoordinatorLeftToo) {
  std::atomic<bool> coordinator_left = false;
  run_as_threads(3,
                 [&](Engine& engine) {
                   std::vector<float> values(10, 1.0F);
                   expect_success(engine.submit(allreduce_of("together", values)));
                   if (engine.world().rank == 1) return;  // shuts down
                   if (engine.world().rank == 2) coordinator_left.wait(false);
                   const core::Status status =
                       outcome(engine.submit(allreduce_of("alone", values)));
                   if (engine.world().rank == 0) {
                     engine.shutdown();
                     coordinator_left = true;
                     coordinator_left.notify_all();
                   }
                   ASSERT_FALSE(status);
                   EXPECT_EQ(status.error().code, ErrorCode::kShutdown);
                   EXPECT_EQ(status.error().culprit, 1) << status.error().message;
                   EXPECT_TRUE(status.error().message.starts_with("all-reduce of 'alone': rank 1"))
                       << status.error().message;
                 },
                 {.quiet = true});
}

TEST(Engine, CompletesEveryHandleAtShutdown) {
  run_as_threads(2, [](Engine& engine) {
    std::vector<float> values(10, 1.0F);
    std::optional<core::Result<Handle>> pending;
    if (engine.world().rank == 0) pending = engine.submit(allreduce_of("never matched", values));
    engine.shutdown();
    if (!pending) return;
    const core::Status status = outcome(*pending);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kShutdown);
    EXPECT_FALSE(engine.submit(allreduce_of("too late", values)));
  });
}

TEST(Engine, LetsGoOfTheCallersMemoryBeforeTheHandleIsDone) {
  run_as_threads(2, [](Engine& engine) {
    auto values = std::make_shared<std::vector<float>>(10'000, 1.0F);
    const std::weak_ptr<std::vector<float>> watched = values;
    Submission submission = allreduce_of("forgotten", *values);
    submission.keep_alive = std::move(values);
    const auto handle = engine.submit(std::move(submission));
    expect_success(handle);
    EXPECT_TRUE(watched.expired());
  });
}

TEST(Engine, RunsABundleTogether) {
  run_as_threads(2, [](Engine& engine) {
    std::vector<std::vector<float>> tensors(20, std::vector<float>(3, 1.0F));
    std::vector<Submission> members;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      members.push_back(allreduce_of(fmt::format("b{}", i), tensors[i]));
    auto handles = engine.submit_bundle("bundle", std::move(members));
    ASSERT_TRUE(handles) << handles.error().message;
    for (const Handle& handle : *handles) expect_success(handle);
    for (const auto& tensor : tensors) EXPECT_EQ(tensor, std::vector<float>(3, 2.0F));
    EXPECT_EQ(engine.statistics().operations, 1U);
  });
}

std::ptrdiff_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

TEST(Engine, LeavesNothingBehindHoweverOftenItStarts) {
  const auto cycle = [](Engine& engine) {
    std::vector<float> values(1000, 1.0F);
    expect_success(engine.submit(allreduce_of("cycle", values)));
  };
  run_as_threads(2, cycle);  // what stays for good is there after the first time
  const auto descriptors = entries_of("/proc/self/fd");
  const auto threads = entries_of("/proc/self/task");
  for (int i = 0; i < 100; ++i) run_as_threads(2, cycle);
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
}

TEST(Engine, RefusesWhatCanNeverWork) {
  run_as_threads(1, [](Engine& engine) {
    std::vector<float> values(4);
    const auto code_of = [&engine](const Submission& submission) {
      const auto handle = engine.submit(submission);
      return handle ? ErrorCode::kInternal : handle.error().code;
    };
    Submission nameless = allreduce_of("", values);
    EXPECT_EQ(code_of(nameless), ErrorCode::kInvalidArgument);
    Submission negative = allreduce_of("negative", values);
    negative.request.shape = {-1};
    EXPECT_EQ(code_of(negative), ErrorCode::kInvalidArgument);
    Submission huge = allreduce_of("huge", values);
    huge.request.shape = {1ll << 40, 1ll << 40};
    EXPECT_EQ(code_of(huge), ErrorCode::kInvalidArgument);
    Submission rootless = allreduce_of("rootless", values);
    rootless.request.op = core::OpKind::kBroadcast;
    rootless.request.root = 1;
    EXPECT_EQ(code_of(rootless), ErrorCode::kInvalidArgument);
    Submission fraction_bits = allreduce_of("fraction bits", values, core::Reduction::kBitOr);
    EXPECT_EQ(code_of(fraction_bits), ErrorCode::kInvalidArgument);
    Submission nowhere = allreduce_of("nowhere", values);
    nowhere.output = nullptr;
    EXPECT_EQ(code_of(nowhere), ErrorCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
