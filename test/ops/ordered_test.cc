// The ordered door of real engines, as threads over the loopback.
#include "ops/ordered.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;
using core::Reduction;

const std::vector<std::size_t> kCounts{0, 1, 7, 1001, 262'144};

class OrderedAt : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OrderedAt, ::testing::Values(1, 2, 3, 5));

TEST_P(OrderedAt, ReducesEverywhere) {
  run_as_threads(GetParam(), [](Engine& engine) {
    const auto size = static_cast<float>(engine.world().size);
    for (const std::size_t count : kCounts) {
      const Floats input(count, static_cast<float>(engine.world().rank + 1));
      Floats output(count);
      OrderedOperation sum = call(OrderedKind::kAllreduce, input, output);
      sum.prescale = 2;
      expect_success(engine.submit_ordered(sum));
      EXPECT_EQ(output, Floats(count, size * (size + 1)));
      OrderedOperation average = call(OrderedKind::kAllreduce, input, output);
      average.reduction = Reduction::kAverage;
      expect_success(engine.submit_ordered(average));
      EXPECT_EQ(output, Floats(count, (size + 1) / 2));
      Floats in_place = input;
      OrderedOperation most = call(OrderedKind::kAllreduce, in_place, in_place);
      most.reduction = Reduction::kMax;
      expect_success(engine.submit_ordered(most));
      EXPECT_EQ(in_place, Floats(count, size));
    }
  });
}

TEST_P(OrderedAt, ReducesToEveryRoot) {
  run_as_threads(GetParam(), [](Engine& engine) {
    const auto size = static_cast<float>(engine.world().size);
    for (int root = 0; root < engine.world().size; ++root) {
      for (const std::size_t count : kCounts) {
        const Floats input(count, static_cast<float>(engine.world().rank));
        Floats output(count, -1.0F);
        OrderedOperation reduce = call(OrderedKind::kReduce, input, output);
        reduce.root = root;
        expect_success(engine.submit_ordered(reduce));
        const bool has_result = engine.world().rank == root;
        EXPECT_EQ(output, Floats(count, has_result ? size * (size - 1) / 2 : -1.0F));
      }
    }
  });
}

TEST_P(OrderedAt, BroadcastsFromEveryRoot) {
  run_as_threads(GetParam(), [](Engine& engine) {
    for (int root = 0; root < engine.world().size; ++root) {
      for (const std::size_t count : kCounts) {
        Floats values(count, static_cast<float>(engine.world().rank));
        OrderedOperation broadcast = call(OrderedKind::kBroadcast, {}, values);
        broadcast.root = root;
        expect_success(engine.submit_ordered(broadcast));
        EXPECT_EQ(values, Floats(count, static_cast<float>(root)));
      }
    }
  });
}

// Block r of rank s holds r * 100 + s; sizes differ from rank to rank where `uneven`.
struct Blocks {
  Blocks(std::size_t count, int ranks, bool uneven) {
    for (int rank = 0; rank < ranks; ++rank) {
      counts.push_back(uneven ? count * static_cast<std::size_t>(rank) : count);
    }
  }
  [[nodiscard]] Floats block(int of, int from) const {
    return Floats(counts[static_cast<std::size_t>(of)], static_cast<float>(of * 100 + from));
  }
  [[nodiscard]] Floats all_from(int from) const {
    Floats all;
    for (int of = 0; of < static_cast<int>(counts.size()); ++of) append(all, block(of, from));
    return all;
  }
  std::vector<std::uint64_t> counts;
};

class OrderedBlocks : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static void run(const std::function<void(Engine&, const Blocks&)>& body) {
    const auto [ranks, uneven] = GetParam();
    run_as_threads(ranks, [&, uneven = uneven](Engine& engine) {
      for (const std::size_t count : {0u, 1u, 13u, 50'000u}) {
        body(engine, Blocks(count, engine.world().size, uneven));
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, OrderedBlocks,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Bool()));

TEST_P(OrderedBlocks, Gathers) {
  run([](Engine& engine, const Blocks& blocks) {
    const int rank = engine.world().rank;
    Floats expected;
    for (int of = 0; of < engine.world().size; ++of) append(expected, blocks.block(of, of));
    Floats output(expected.size());
    const Floats input = blocks.block(rank, rank);
    OrderedOperation gather = call(OrderedKind::kAllgather, input, output);
    gather.blocks = blocks.counts;
    expect_success(engine.submit_ordered(gather));
    EXPECT_EQ(output, expected);
    for (int root = 0; root < engine.world().size; ++root) {
      std::fill(output.begin(), output.end(), 0.0F);
      OrderedOperation to_root = call(OrderedKind::kGather, input, output);
      to_root.blocks = blocks.counts;
      to_root.root = root;
      expect_success(engine.submit_ordered(to_root));
      if (rank == root) {
        EXPECT_EQ(output, expected);
      }
    }
  });
}

TEST_P(OrderedBlocks, Scatters) {
  run([](Engine& engine, const Blocks& blocks) {
    const int rank = engine.world().rank;
    for (int root = 0; root < engine.world().size; ++root) {
      const Floats input = rank == root ? blocks.all_from(rank) : Floats{};
      Floats output(blocks.counts[static_cast<std::size_t>(rank)]);
      OrderedOperation scatter = call(OrderedKind::kScatter, input, output);
      scatter.blocks = blocks.counts;
      scatter.root = root;
      expect_success(engine.submit_ordered(scatter));
      EXPECT_EQ(output, blocks.block(rank, root));
    }
  });
}

TEST_P(OrderedBlocks, ReducesAndScatters) {
  run([](Engine& engine, const Blocks& blocks) {
    const int rank = engine.world().rank;
    const int size = engine.world().size;
    const Floats input = blocks.all_from(rank);
    Floats output(blocks.counts[static_cast<std::size_t>(rank)]);
    OrderedOperation scatter = call(OrderedKind::kReduceScatter, input, output);
    scatter.blocks = blocks.counts;
    expect_success(engine.submit_ordered(scatter));
    const int all_ranks = size * (size - 1) / 2;
    const auto sum = static_cast<float>(rank * 100 * size + all_ranks);
    EXPECT_EQ(output, Floats(output.size(), sum));
    EXPECT_EQ(input, blocks.all_from(rank));
  });
}

TEST_P(OrderedBlocks, ExchangesAll) {
  run([](Engine& engine, const Blocks& blocks) {
    const int rank = engine.world().rank;
    const Floats input = blocks.all_from(rank);
    Floats expected;
    for (int from = 0; from < engine.world().size; ++from) {
      append(expected, blocks.block(rank, from));
    }
    Floats output(expected.size());
    OrderedOperation exchange = call(OrderedKind::kAlltoall, input, output);
    exchange.blocks = blocks.counts;
    exchange.received_blocks.assign(blocks.counts.size(),
                                    blocks.counts[static_cast<std::size_t>(rank)]);
    expect_success(engine.submit_ordered(exchange));
    EXPECT_EQ(output, expected);
  });
}

TEST(Ordered, ExchangesInPlace) {
  run_as_threads(3, [](Engine& engine) {
    const auto rank = static_cast<float>(engine.world().rank);
    Floats values{rank * 10, rank * 10 + 1, rank * 10 + 2};
    expect_success(engine.submit_ordered(call(OrderedKind::kAlltoall, values, values)));
    EXPECT_EQ(values, (Floats{rank, rank + 10, rank + 20}));
  });
}

TEST(Ordered, BarrierWaitsForTheLast) {
  run_as_threads(3, [](Engine& engine) {
    static std::atomic<int> came{0};
    came.fetch_add(1);
    expect_success(engine.submit_ordered(call(OrderedKind::kBarrier, {}, none())));
    EXPECT_GE(came.load(), 3);
  });
}

TEST(Ordered, AveragesIntegersExactly) {
  run_as_threads(3, [](Engine& engine) {
    std::vector<std::int64_t> values{49, -49, engine.world().rank};
    OrderedOperation average;
    average.type = core::DataType::kInt64;
    average.reduction = Reduction::kAverage;
    average.output = std::as_writable_bytes(std::span(values));
    average.input = average.output;
    expect_success(engine.submit_ordered(average));
    EXPECT_EQ(values, (std::vector<std::int64_t>{49, -49, 1}));
  });
}

TEST(Ordered, ManyOperationsInFlight) {
  run_as_threads(3, [](Engine& engine) {
    std::vector<Floats> values;
    for (int i = 0; i < 300; ++i) {
      values.emplace_back(static_cast<std::size_t>(1 + i * 7 % 2000), static_cast<float>(i));
    }
    std::vector<core::Result<Handle>> handles;
    for (Floats& one : values) {
      handles.push_back(engine.submit_ordered(call(OrderedKind::kAllreduce, one, one)));
    }
    for (const auto& handle : handles) expect_success(handle);
    for (int i = 0; i < 300; ++i) {
      const Floats& one = values[static_cast<std::size_t>(i)];
      EXPECT_EQ(one, Floats(one.size(), static_cast<float>(3 * i)));
    }
  });
}

TEST(Ordered, GroupsInDifferentOrderDoNotWaitForEachOther) {
  run_as_threads(4, [](Engine& engine) {
    constexpr core::GroupId kGroups = 12;
    const int rank = engine.world().rank;
    for (core::GroupId id = 1; id <= kGroups; ++id) {
      ASSERT_TRUE(engine.add_group(id, {3, 1, 0, 2}));
    }
    std::vector<Floats> values(kGroups, Floats(1000, 1.0F));
    std::vector<core::Result<Handle>> handles;
    // Far more groups than the window of one, each rank in an order of its own.
    for (core::GroupId i = 0; i < kGroups; ++i) {
      const core::GroupId id = 1 + (i * 5 + static_cast<core::GroupId>(rank) * 7) % kGroups;
      OrderedOperation sum = call(OrderedKind::kAllreduce, values[id - 1], values[id - 1]);
      sum.group = id;
      handles.push_back(engine.submit_ordered(sum));
    }
    for (const auto& handle : handles) expect_success(handle);
    for (const Floats& one : values) EXPECT_EQ(one, Floats(1000, 4.0F));
    for (core::GroupId id = 1; id <= kGroups; ++id) engine.remove_group(id);
  });
}

TEST(Ordered, SubgroupsCountTheirOwnPositions) {
  run_as_threads(4, [](Engine& engine) {
    const int rank = engine.world().rank;
    const bool odd = rank % 2 != 0;
    const core::GroupId id = odd ? 7 : 6;
    ASSERT_TRUE(engine.add_group(id, odd ? std::vector<int>{3, 1} : std::vector<int>{0, 2}));
    Floats values(10, static_cast<float>(rank));
    OrderedOperation broadcast = call(OrderedKind::kBroadcast, {}, values);
    broadcast.group = id;
    broadcast.root = 1;
    expect_success(engine.submit_ordered(broadcast));
    EXPECT_EQ(values, Floats(10, odd ? 1.0F : 2.0F));
  });
}

TEST(Ordered, SharesTheWorldWithTheNamedDoor) {
  run_as_threads(3, [](Engine& engine) {
    for (int round = 0; round < 20; ++round) {
      Floats named(100, 1.0F);
      Floats ordered(100, 2.0F);
      const auto first = engine.submit(allreduce_of("named", named));
      const auto second = engine.submit_ordered(call(OrderedKind::kAllreduce, ordered, ordered));
      expect_success(second);
      expect_success(first);
      EXPECT_EQ(named, Floats(100, 3.0F));
      EXPECT_EQ(ordered, Floats(100, 6.0F));
    }
  });
}

TEST(Ordered, LetsGoOfMemoryBeforeTheHandleIsDone) {
  run_as_threads(2, [](Engine& engine) {
    auto values = std::make_shared<Floats>(1000, 1.0F);
    const std::weak_ptr<Floats> watched = values;
    OrderedOperation sum = call(OrderedKind::kAllreduce, *values, *values);
    sum.keep_alive = std::move(values);
    const auto handle = engine.submit_ordered(std::move(sum));
    expect_success(handle);
    EXPECT_TRUE(watched.expired());
  });
}

TEST(Ordered, RefusesWhatCanNeverWork) {
  run_as_threads(1, [](Engine& engine) {
    Floats four(4);
    Floats five(5);
    const auto code_of = [&engine](const OrderedOperation& operation) {
      const auto handle = engine.submit_ordered(operation);
      return handle ? ErrorCode::kInternal : handle.error().code;
    };
    EXPECT_EQ(code_of(call(OrderedKind::kAllreduce, four, five)), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code_of(call(OrderedKind::kAllgather, four, five)), ErrorCode::kInvalidArgument);
    OrderedOperation fraction_bits = call(OrderedKind::kAllreduce, four, four);
    fraction_bits.reduction = Reduction::kBitXor;
    EXPECT_EQ(code_of(fraction_bits), ErrorCode::kInvalidArgument);
    OrderedOperation rootless = call(OrderedKind::kBroadcast, {}, four);
    rootless.root = 1;
    EXPECT_EQ(code_of(rootless), ErrorCode::kInvalidArgument);
    OrderedOperation stranger = call(OrderedKind::kBroadcast, {}, four);
    stranger.group = 9;
    EXPECT_EQ(code_of(stranger), ErrorCode::kInvalidArgument);
    EXPECT_FALSE(engine.add_group(9, {0, 0}));
    EXPECT_FALSE(engine.add_group(9, {1}));
    EXPECT_FALSE(engine.add_group(0, {0}));
    EXPECT_TRUE(engine.add_group(9, {0}));
    EXPECT_FALSE(engine.add_group(9, {0}));
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
