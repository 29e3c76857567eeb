// The ordered door on boards without sockets: notices, late starts, disagreements and failures, in
// many random interleavings.
#include <gtest/gtest.h>

#include "test/ops/ordered_spec.h"

namespace fasthorovod::ops {
namespace {

constexpr std::uint32_t kGroup = wire_group(5, Door::kOrdered);

class OrderedAlgorithm : public testing::TestWithParam<std::size_t> {};

TEST_P(OrderedAlgorithm, GivesTheRightAnswerWithoutParking) { check_row(GetParam(), ordered_spec); }

INSTANTIATE_TEST_SUITE_P(Table, OrderedAlgorithm,
                         testing::Range<std::size_t>(0, algorithm_table().size()), name_of_row);

class OrderedBoards : public BoardsTest {};

TEST_F(OrderedBoards, NothingLeavesToARankThatHasNotStarted) {
  const CollectiveSpec spec = ordered_spec("ring-allreduce", 2, 3);
  BoardNetwork network(spec.network);
  network.submit(0, operation(spec, 0, 1));
  network.run();
  EXPECT_EQ(network.bytes_sent(0), 0U);
  EXPECT_EQ(network.board(0).awaited(kGroup, 1), std::vector<int>{1});
  EXPECT_EQ(network.parked(), 0U);
  network.submit(1, operation(spec, 1, 1));
  network.run();
  EXPECT_EQ(network.outcomes(0).size(), 1U);
  EXPECT_EQ(network.outcomes(1).size(), 1U);
}

TEST_F(OrderedBoards, SeveralInFlightEndOnAllRanks) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const CollectiveSpec spec = ordered_spec("ring-allreduce", 3, seed);
    BoardNetwork network(spec.network);
    for (std::uint64_t sequence = 1; sequence <= 10; ++sequence) {
      for (int rank = 0; rank < 3; ++rank) network.submit(rank, operation(spec, rank, sequence));
    }
    network.run();
    for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(network.outcomes(rank).size(), 10U) << seed;
    ASSERT_TRUE(network.faults().empty());
  }
}

TEST_F(OrderedBoards, ADisagreementIsFoundWhateverTheOrder) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const CollectiveSpec spec = ordered_spec("ring-allreduce", 3, seed);
    BoardNetwork network(spec.network);
    for (int rank = 0; rank < 3; ++rank) {
      Operation one = operation(spec, rank, 1);
      if (rank == 2) one.fingerprint ^= 1;
      network.submit(rank, std::move(one));
    }
    network.run();
    ASSERT_FALSE(network.disagreements().empty()) << seed;
    ASSERT_TRUE(network.faults().empty()) << network.faults().front().error.message;
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(network.outcomes(rank).empty());
    // The verdict, then the next operation.
    for (int rank = 0; rank < 3; ++rank) {
      network.board(rank).fail(kGroup, 1, {core::ErrorCode::kMismatch, "they disagree"});
      network.submit(rank, operation(spec, rank, 2));
    }
    network.run();
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(network.outcomes(rank).size(), 2U) << seed;
      EXPECT_FALSE(network.outcomes(rank)[0]);
      EXPECT_TRUE(network.outcomes(rank)[1]);
    }
  }
}

// Both believe to be the root of a broadcast, so neither would wait for the other.
TEST_F(OrderedBoards, TwoRootsFindEachOther) {
  CollectiveSpec spec = ordered_spec("binomial-broadcast", 2, 5);
  BoardNetwork network(spec.network);
  for (int rank = 0; rank < 2; ++rank) {
    spec.root = rank;
    Operation one = operation(spec, rank, 1);
    one.fingerprint = static_cast<std::uint32_t>(rank);
    network.submit(rank, std::move(one));
  }
  network.run();
  EXPECT_EQ(network.disagreements().size(), 2U);
}

TEST_F(OrderedBoards, ARankWithNothingToMoveIsFoundAfterItsEnd) {
  const CollectiveSpec spec = ordered_spec("ring-allreduce", 2, 5);
  CollectiveSpec empty = spec;
  empty.elements = 0;
  for (const int first : {0, 1}) {
    BoardNetwork network(spec.network);
    const auto submit = [&](int rank) {
      Operation one = operation(rank == 0 ? empty : spec, rank, 1);
      one.fingerprint = static_cast<std::uint32_t>(rank);
      network.submit(rank, std::move(one));
      network.run();
    };
    submit(first);
    submit(1 - first);
    ASSERT_EQ(network.disagreements().size(), 1U);
    EXPECT_EQ(network.disagreements().front().first, 0);
  }
}

// A rank gives an operation up at a random moment. Its memory must not be touched after `done`, and
// what the others still send must be dropped without a fault.
TEST_F(OrderedBoards, AFailureAtAnyMomentLeavesTheRestHealthy) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const CollectiveSpec spec = ordered_spec("ring-allreduce", 3, seed);
    BoardNetwork network(spec.network);
    for (std::uint64_t sequence = 1; sequence <= 2; ++sequence) {
      for (int rank = 0; rank < 3; ++rank) network.submit(rank, operation(spec, rank, sequence));
    }
    // A rank does not start what it knows to have failed, so the failure comes after the starts.
    const auto all_started = [&network] {
      for (int rank = 0; rank < 3; ++rank) {
        if (network.board(rank).in_flight() + network.outcomes(rank).size() < 2) return false;
      }
      return true;
    };
    while (!all_started()) network.step();
    for (std::uint64_t step = 0; step < seed; ++step) network.step();
    const core::Error error{core::ErrorCode::kTimedOut, "too late"};
    network.board(0).fail(kGroup, 1, error);
    network.run();
    for (int rank = 1; rank < 3; ++rank) network.board(rank).fail(kGroup, 1, error);
    network.run();
    ASSERT_TRUE(network.faults().empty()) << network.faults().front().error.message;
    for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(network.outcomes(rank).size(), 2U) << seed;
  }
}

}  // namespace
}  // namespace fasthorovod::ops
