// Memory that an engine shares with the other ranks of its host.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {
namespace {

constexpr std::size_t kMiB = 1 << 20;

GroupOptions with_arena_of(int mebibytes) {
  return {.adjust = [mebibytes](core::Config& config) { config.arena_mb = mebibytes; }};
}

core::Status sum_in_place(Engine& engine, std::span<std::byte> values) {
  OrderedOperation operation;
  operation.type = core::DataType::kUint8;
  operation.input = values;
  operation.output = values;
  return outcome(engine.submit_ordered(std::move(operation)));
}

TEST(EngineSharedMemory, ComesBackWhenNobodyHoldsIt) {
  run_as_threads(
      2,
      [](Engine& engine) {
        for (int i = 0; i < 50; ++i) {
          auto memory = engine.shared_memory(5 * kMiB);
          ASSERT_TRUE(memory) << memory.error().message;
          std::fill_n(memory->get(), 5 * kMiB, std::byte{1});
        }
      },
      with_arena_of(16));
}

TEST(EngineSharedMemory, SaysWhatIsTakenAndWhichSettingLimitsIt) {
  run_as_threads(
      2,
      [](Engine& engine) {
        const auto some = engine.shared_memory(3 * kMiB);
        ASSERT_TRUE(some);
        const auto more = engine.shared_memory(100 * kMiB);
        ASSERT_FALSE(more);
        EXPECT_EQ(more.error().code, core::ErrorCode::kUnavailable);
        for (const char* words : {"100 MiB", "of 16 MiB", "FASTHOROVOD_ARENA_MB"}) {
          EXPECT_NE(more.error().message.find(words), std::string::npos) << more.error().message;
        }
      },
      with_arena_of(16));
}

// Large enough that outputs are lent as well; ranks differ in where theirs lie.
TEST(EngineSharedMemory, LargeTensorsAreSummedWhereTheyLie) {
  constexpr std::size_t kBytes = 33 * kMiB + 5;
  for (int shared = 1; shared < 4; ++shared) {
    run_as_threads(2, [shared](Engine& engine) {
      const int rank = engine.world().rank;
      std::shared_ptr<std::byte> lent;
      std::vector<std::byte> own;
      if ((shared >> rank) % 2 == 1) {
        lent = *engine.shared_memory(kBytes);
      } else {
        own.resize(kBytes);
      }
      const std::span<std::byte> values{lent ? lent.get() : own.data(), kBytes};
      for (std::size_t i = 0; i < kBytes; ++i) values[i] = static_cast<std::byte>(i % 101);
      ASSERT_TRUE(sum_in_place(engine, values));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < kBytes; ++i) {
        if (values[i] != static_cast<std::byte>(i % 101 * 2)) ++wrong;
      }
      EXPECT_EQ(wrong, 0U) << "rank " << rank << ", shared " << shared;
    });
  }
}

TEST(EngineSharedMemory, OutlivesItsEngineAndServesTheNextOne) {
  std::mutex mutex;
  std::vector<std::shared_ptr<std::byte>> kept(2);
  run_as_threads(2, [&](Engine& engine) {
    auto memory = *engine.shared_memory(kMiB);
    std::fill_n(memory.get(), kMiB, std::byte{3});
    EXPECT_TRUE(sum_in_place(engine, {memory.get(), kMiB}));
    const std::lock_guard lock(mutex);
    kept[static_cast<std::size_t>(engine.world().rank)] = std::move(memory);
  });
  run_as_threads(2, [&](Engine& engine) {
    const std::span<std::byte> values{kept[static_cast<std::size_t>(engine.world().rank)].get(),
                                      kMiB};
    EXPECT_TRUE(std::ranges::all_of(values, [](std::byte b) { return b == std::byte{6}; }));
    EXPECT_TRUE(sum_in_place(engine, values));
    EXPECT_TRUE(std::ranges::all_of(values, [](std::byte b) { return b == std::byte{12}; }));
  });
}

TEST(EngineSharedMemory, IsOrdinaryWhereNobodySharesIt) {
  run_as_threads(1, [](Engine& engine) {
    const auto memory = engine.shared_memory(kMiB);
    ASSERT_TRUE(memory);
    std::fill_n(memory->get(), kMiB, std::byte{3});
    EXPECT_TRUE(sum_in_place(engine, {memory->get(), kMiB}));
    EXPECT_EQ(memory->get()[kMiB - 1], std::byte{3});
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
