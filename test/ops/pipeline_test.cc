// Several operations in flight at once, of every algorithm, in one order, started at random times.
#include <gtest/gtest.h>

#include "test/ops/collective.h"

namespace fasthorovod::ops {
namespace {

constexpr std::size_t kOperations = 24;

CollectiveSpec spec_of(std::size_t number, const BoardNetwork::Options& network) {
  CollectiveSpec spec;
  spec.algorithm = &algorithm_table()[number % algorithm_table().size()];
  spec.network = network;
  spec.elements = number * number * 7 % 301;
  spec.blocks = static_cast<int>(number % 3);
  spec.root = static_cast<int>(number) % network.size;
  spec.chunk_bytes = 32U << (number % 5);
  spec.data_seed = number;
  return spec;
}

class Pipeline : public testing::TestWithParam<std::tuple<int, std::uint64_t>> {};

TEST_P(Pipeline, ManyOperationsInFlightAllGiveTheRightAnswer) {
  const auto [size, seed] = GetParam();
  const BoardNetwork::Options options = {
      .size = size, .flows = 1 + static_cast<int>(seed % 3), .window = 4, .seed = seed};
  BoardNetwork network(options);
  std::vector<std::vector<Bytes>> sources;
  std::vector<std::vector<Bytes>> buffers;
  for (std::size_t number = 0; number < kOperations; ++number) {
    const CollectiveSpec spec = spec_of(number, options);
    sources.push_back(inputs_of(spec));
    buffers.push_back(buffers_of(spec));
    for (int rank = 0; rank < size; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      network.submit(rank,
                     operation_of(spec, rank, buffers.back()[at], number + 1, &sources.back()[at]));
    }
  }
  network.run();
  EXPECT_TRUE(network.faults().empty());
  EXPECT_GT(network.joined(), 0U);
  if (size > 2) {
    EXPECT_GT(network.parked(), 0U);
  }
  for (int rank = 0; rank < size; ++rank) {
    ASSERT_EQ(network.outcomes(rank).size(), kOperations);
  }
  for (std::size_t number = 0; number < kOperations; ++number) {
    const CollectiveSpec spec = spec_of(number, options);
    ASSERT_EQ(defined_of(spec, buffers[number]), expected_of(spec, sources[number]))
        << spec.algorithm->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Pipeline,
                         testing::Combine(testing::Values(2, 3, 5, 8),
                                          testing::Range<std::uint64_t>(1, 13)));

/// A barrier holds whoever comes early: nobody is done while one rank has not started.
TEST(Barrier, NobodyLeavesBeforeEverybodyHasCome) {
  for (int size = 2; size <= 9; ++size) {
    CollectiveSpec spec;
    spec.algorithm = find_algorithm("dissemination-barrier");
    spec.network = {.size = size, .flows = 2, .window = 1, .seed = 5};
    BoardNetwork network(spec.network);
    Bytes nothing;
    for (int rank = 1; rank < size; ++rank) {
      network.submit(rank, operation_of(spec, rank, nothing, 1));
    }
    network.run();
    for (int rank = 1; rank < size; ++rank) EXPECT_TRUE(network.outcomes(rank).empty());
    network.submit(0, operation_of(spec, 0, nothing, 1));
    network.run();
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(network.outcomes(rank).size(), 1U);
  }
}

TEST(FailAll, EndsWhatIsUnderWayAtEveryMoment) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CollectiveSpec spec = spec_of(0, {.size = 3, .flows = 2, .window = 4, .seed = seed});
    spec.elements = 99;
    BoardNetwork network(spec.network);
    std::vector<std::vector<Bytes>> buffers(6, inputs_of(spec));
    for (std::uint64_t sequence = 1; sequence <= buffers.size(); ++sequence) {
      for (int rank = 0; rank < 3; ++rank) {
        Bytes& buffer = buffers[sequence - 1][static_cast<std::size_t>(rank)];
        network.submit(rank, operation_of(spec, rank, buffer, sequence));
      }
    }
    for (std::uint64_t i = 0; i < seed * 20; ++i) network.step();
    for (int rank = 0; rank < 3; ++rank) {
      network.board(rank).fail_all({core::ErrorCode::kPeerLost, "gone", 1});
    }
    network.run();
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(network.outcomes(rank).size(), buffers.size());
      EXPECT_EQ(network.board(rank).in_flight(), 0U);
    }
  }
}

}  // namespace
}  // namespace fasthorovod::ops
