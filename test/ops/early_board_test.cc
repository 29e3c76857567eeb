// Small operations whose chunks do not wait for notices, on boards without sockets: late starts,
// disagreements and failures, in many random interleavings.
#include <gtest/gtest.h>

#include "ops/early_records.h"
#include "test/ops/ordered_spec.h"

namespace fasthorovod::ops {
namespace {

using transport::FrameHeader;
using transport::FrameKind;

constexpr std::uint32_t kGroup = wire_group(5, Door::kOrdered);

CollectiveSpec early(std::string_view algorithm, int size, std::uint64_t seed) {
  CollectiveSpec spec = ordered_spec(algorithm, size, seed);
  spec.network.window = 1;
  spec.early = true;
  return spec;
}

class EarlyAlgorithm : public testing::TestWithParam<std::size_t> {};

TEST_P(EarlyAlgorithm, GivesTheRightAnswerWithoutParking) { check_row(GetParam(), early); }

INSTANTIATE_TEST_SUITE_P(Table, EarlyAlgorithm,
                         testing::Range<std::size_t>(0, algorithm_table().size()), name_of_row);

TEST(MayGoEarly, WhatIsSmallAndAnswered) {
  CollectiveSpec spec = early("direct-allgather", 4, 1);
  EXPECT_TRUE(may_go_early(spec.algorithm->build(shape_of(spec, 0))));
  spec.elements = 1U << 20;
  spec.chunk_bytes = 64 << 10;
  EXPECT_FALSE(may_go_early(spec.algorithm->build(shape_of(spec, 0)))) << "too much";
  spec = early("binomial-broadcast", 2, 1);
  EXPECT_FALSE(may_go_early(spec.algorithm->build(shape_of(spec, 0))))
      << "a root could run ahead for ever";
  spec = early("ring-allreduce", 3, 1);
  EXPECT_FALSE(may_go_early(spec.algorithm->build(shape_of(spec, 0))));
  Schedule gated =
      early("ring-allreduce", 2, 1).algorithm->build(shape_of(early("ring-allreduce", 2, 1), 0));
  EXPECT_TRUE(may_go_early(gated));
  gated.pieces = 1;
  EXPECT_FALSE(may_go_early(gated));
}

class EarlyBoards : public BoardsTest {};

TEST_F(EarlyBoards, ChunksLeaveToARankThatHasNotStarted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const CollectiveSpec spec = early("direct-allgather", 2, seed);
    BoardNetwork network(spec.network);
    network.submit(0, operation(spec, 0, 1));
    network.run();
    EXPECT_EQ(network.bytes_sent(0), bytes_by_formula(spec, 0));
    EXPECT_EQ(network.board(0).awaited(kGroup, 1), std::vector<int>{1});
    EXPECT_TRUE(network.outcomes(0).empty());
    network.submit(1, operation(spec, 1, 1));
    network.run();
    EXPECT_EQ(network.parked(), 0U);
    for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(network.outcomes(rank).size(), 1U) << seed;
    EXPECT_EQ(buffers_[0], buffers_[1]);
    buffers_.clear();
  }
}

TEST_F(EarlyBoards, APeerMayBeOneOperationAhead) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const CollectiveSpec spec = early("direct-allgather", 3, seed);
    BoardNetwork network(spec.network);
    for (std::uint64_t sequence = 1; sequence <= 10; ++sequence) {
      for (int rank = 0; rank < 3; ++rank) network.submit(rank, operation(spec, rank, sequence));
    }
    network.run();
    ASSERT_TRUE(network.faults().empty()) << network.faults().front().error.message;
    ASSERT_TRUE(network.disagreements().empty());
    for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(network.outcomes(rank).size(), 10U) << seed;
    for (const Bytes& buffer : buffers_) ASSERT_EQ(buffer, buffers_[0]) << seed;
    buffers_.clear();
  }
}

// Also when chunks overtake the notices: what bears another fingerprint is dropped.
TEST_F(EarlyBoards, DataOfAnotherOperationIsNotTrusted) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const CollectiveSpec spec = early("direct-allgather", 2, seed);
    BoardNetwork network(spec.network);
    bool notices_wait = seed % 2 == 0;
    network.delay([&](int, const FrameHeader& header) {
      return notices_wait && header.kind == FrameKind::kReady;
    });
    for (int rank = 0; rank < 2; ++rank) {
      Operation one = operation(spec, rank, 1);
      one.fingerprint = static_cast<std::uint32_t>(rank);
      network.submit(rank, std::move(one));
    }
    network.run();
    notices_wait = false;
    network.run();
    ASSERT_EQ(network.disagreements().size(), 2U) << seed;
    ASSERT_TRUE(network.faults().empty()) << network.faults().front().error.message;
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(network.outcomes(rank).empty());
      EXPECT_EQ(buffers_[static_cast<std::size_t>(rank)],
                inputs_of(spec)[static_cast<std::size_t>(rank)]);
      network.board(rank).fail(kGroup, 1, {core::ErrorCode::kMismatch, "they disagree"});
      network.submit(rank, operation(spec, rank, 2));
    }
    network.run();
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(network.outcomes(rank).size(), 2U) << seed;
      EXPECT_TRUE(network.outcomes(rank)[1]);
    }
    buffers_.clear();
  }
}

TEST_F(EarlyBoards, WhatCameForAFailedOperationIsDropped) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const CollectiveSpec spec = early("direct-allgather", 2, seed);
    BoardNetwork network(spec.network);
    const core::Error error{core::ErrorCode::kTimedOut, "too late"};
    network.submit(0, operation(spec, 0, 1));
    for (std::uint64_t step = 0; step < seed; ++step) network.step();
    network.board(1).fail(kGroup, 1, error);
    network.run();
    network.board(0).fail(kGroup, 1, error);
    for (int rank = 0; rank < 2; ++rank) network.submit(rank, operation(spec, rank, 2));
    network.run();
    ASSERT_TRUE(network.faults().empty()) << network.faults().front().error.message;
    ASSERT_EQ(network.outcomes(0).size(), 2U);
    ASSERT_EQ(network.outcomes(1).size(), 1U);
    EXPECT_TRUE(network.outcomes(0)[1]);
    EXPECT_TRUE(network.outcomes(1)[0]);
    buffers_.clear();
  }
}

// A rank gives an operation up at a random moment; the next one works.
TEST_F(EarlyBoards, AFailureAtAnyMomentLeavesTheRestHealthy) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const CollectiveSpec spec = early("direct-allgather", 3, seed);
    BoardNetwork network(spec.network);
    for (int rank = 0; rank < 3; ++rank) network.submit(rank, operation(spec, rank, 1));
    const auto all_started = [&network] {
      for (int rank = 0; rank < 3; ++rank) {
        if (network.board(rank).in_flight() + network.outcomes(rank).size() < 1) return false;
      }
      return true;
    };
    while (!all_started()) network.step();
    for (std::uint64_t step = 0; step < seed % 60; ++step) network.step();
    const core::Error error{core::ErrorCode::kTimedOut, "too late"};
    for (int rank = 0; rank < 3; ++rank) network.board(rank).fail(kGroup, 1, error);
    for (int rank = 0; rank < 3; ++rank) network.submit(rank, operation(spec, rank, 2));
    network.run();
    ASSERT_TRUE(network.faults().empty()) << network.faults().front().error.message;
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(network.outcomes(rank).size(), 2U) << seed;
      EXPECT_TRUE(network.outcomes(rank)[1]);
    }
    buffers_.clear();
  }
}

FrameHeader early_header(std::uint32_t group, std::uint64_t bytes) {
  return {
      .epoch = 3, .group = group, .sequence = 1, .payload_bytes = bytes, .kind = FrameKind::kEarly};
}

TEST(EarlyChunks, AreRefusedWhereNoHealthyPeerSendsThem) {
  ChunkBoard board([](int, const core::Error&) {}, [] {});
  const auto large = board.arrive(1, early_header(kGroup, kEarlyBytes + 1));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, core::ErrorCode::kProtocol);
  EXPECT_FALSE(board.arrive(1, early_header(wire_group(0, Door::kNamed), 8)));
  EXPECT_FALSE(board.arrive(1, early_header(wire_group(5, Door::kMessage), 8)));
  EXPECT_TRUE(board.arrive(1, early_header(kGroup, kEarlyBytes)));
}

TEST(EarlyRecords, AreBounded) {
  EarlyRecords<int> records(10);
  EXPECT_TRUE(records.add(1, 1, 7, 6));
  EXPECT_FALSE(records.add(1, 2, 8, 5));
  EXPECT_TRUE(records.add(2, 1, 9, 4));
  EXPECT_EQ(records.take(1, 1), std::vector<int>{7});
  EXPECT_TRUE(records.take(1, 1).empty());
  EXPECT_TRUE(records.add(1, 2, 8, 6));
  EXPECT_FALSE(records.add(1, 3, 8));
  records.drop_group(1);
  EXPECT_TRUE(records.add(1, 3, 8, 6));
  EXPECT_EQ(records.take(2, 1), std::vector<int>{9});
}

}  // namespace
}  // namespace fasthorovod::ops
