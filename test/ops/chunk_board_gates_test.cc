// Gates of pieces on the board of one rank, call by call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "ops/algorithms/host_ring.h"
#include "ops/chunk_board.h"

namespace fasthorovod::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using transport::Arrival;
using transport::FrameHeader;
using transport::FrameKind;

constexpr int kPeer = 9;  // world rank
constexpr std::uint32_t kGroup = wire_group(6, Door::kNamed);

/// The board of the first of two ranks on two hosts. Of two floats each, the three pieces of an
/// operation move one by one: one chunk goes and one comes to be reduced, then the same to be
/// copied.
class ChunkBoardGates : public testing::Test {
 protected:
  Operation operation() {
    HostLayout layout = lay_out({{0}, {1}}, 0, 6, 4, kHostSlots * sizeof(float) * 2);
    layout.slots = 1;
    Operation made;
    made.group = kGroup;
    made.sequence = 1;
    made.title = "all-reduce of 'w'";
    made.members = {4, kPeer};
    made.buffer = std::as_writable_bytes(std::span(values_));
    made.type = core::DataType::kFloat32;
    made.schedule = host_ring(layout, 1024);
    made.piece_done = [this](std::uint32_t piece) { pieces_.push_back(piece); };
    made.done = [this](core::Status status) { outcomes_.push_back(std::move(status)); };
    return made;
  }

  void open(std::uint32_t count) { board_.open_gates(kGroup, 1, count); }

  void peer_opens(std::uint32_t count) {
    const FrameHeader header{
        .group = kGroup, .sequence = 1, .transfer = count, .kind = FrameKind::kOpened};
    const core::Result<Arrival> arrival = board_.arrive(kPeer, header);
    ASSERT_TRUE(arrival);
    board_.received(arrival->ticket);
  }

  /// Sends one frame; what it was, or nothing.
  std::optional<FrameHeader> send() {
    const auto chunk = board_.take(kPeer);
    if (!chunk) return std::nullopt;
    board_.sent(chunk->ticket);
    return chunk->header;
  }

  /// True when the chunk was taken, false when it parks.
  bool receive(std::uint32_t transfer) {
    const FrameHeader header{.group = kGroup,
                             .sequence = 1,
                             .transfer = transfer,
                             .hop = transfer % 2,
                             .payload_bytes = 4};
    const core::Result<Arrival> arrival = board_.arrive(kPeer, header);
    if (!arrival || arrival->kind == Arrival::Kind::kPark) return false;
    board_.received(arrival->ticket);
    return true;
  }

  std::array<float, 2> values_{};
  std::vector<core::Status> outcomes_;
  std::vector<std::uint32_t> pieces_;
  std::vector<core::Error> faults_;
  int wakes_ = 0;
  ChunkBoard board_{[this](int, core::Error error) { faults_.push_back(std::move(error)); },
                    [this] { ++wakes_; }};
};

TEST_F(ChunkBoardGates, HoldBackSendsAloneWhereReceivesAreEarly) {
  Operation early = operation();
  early.schedule.receives_early = true;
  board_.start(std::move(early));
  EXPECT_TRUE(receive(0));
  EXPECT_EQ(send(), std::nullopt);
  EXPECT_THAT(pieces_, IsEmpty());
  open(1);
  EXPECT_TRUE(send());
}

TEST_F(ChunkBoardGates, NothingMovesBeforeTheGateOpens) {
  board_.start(operation());
  EXPECT_FALSE(board_.has_work(kPeer));
  EXPECT_FALSE(receive(0));
  open(0);
  EXPECT_FALSE(receive(0));
  const int before = wakes_;
  open(1);
  EXPECT_GT(wakes_, before);
  EXPECT_TRUE(receive(0));
  EXPECT_FALSE(receive(2));  // of the next piece
}

TEST_F(ChunkBoardGates, ALaterPieceLeavesWhenBothGatesAreOpen) {
  board_.start(operation());
  open(1);
  while (send()) {
  }
  EXPECT_TRUE(receive(0));
  EXPECT_TRUE(send());
  EXPECT_TRUE(receive(1));
  EXPECT_THAT(pieces_, ElementsAre(0));
  open(2);
  const std::optional<FrameHeader> told = send();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, FrameKind::kOpened);
  EXPECT_EQ(told->transfer, 2U);
  EXPECT_FALSE(send());
  peer_opens(2);
  peer_opens(1);  // it was overtaken
  ASSERT_TRUE(send());
  EXPECT_TRUE(outcomes_.empty());
}

TEST_F(ChunkBoardGates, AnOperationEndsWithItsLastPiece) {
  board_.start(operation());
  for (std::uint32_t piece = 0; piece < 3; ++piece) {
    open(piece + 1);
    if (piece > 0) peer_opens(piece + 1);
    while (send()) {
    }
    EXPECT_TRUE(receive(2 * piece));
    EXPECT_TRUE(outcomes_.empty());
    while (send()) {
    }
    EXPECT_TRUE(receive(2 * piece + 1));
  }
  EXPECT_THAT(pieces_, ElementsAre(0, 1, 2));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_TRUE(outcomes_[0]);
  peer_opens(2);  // late, and harmless
  EXPECT_THAT(faults_, IsEmpty());
}

TEST_F(ChunkBoardGates, APieceWithoutTransfersIsOverWhenItsGateOpens) {
  Operation empty = operation();
  empty.schedule.sends.clear();
  empty.schedule.receives.clear();
  board_.start(std::move(empty));
  EXPECT_THAT(pieces_, IsEmpty());
  EXPECT_THAT(board_.waiting()->text, HasSubstr("waits for other ranks of its host"));
  open(2);
  EXPECT_THAT(pieces_, ElementsAre(0, 1));
  EXPECT_TRUE(outcomes_.empty());
  open(3);
  EXPECT_THAT(pieces_, ElementsAre(0, 1, 2));
  EXPECT_EQ(outcomes_.size(), 1U);
}

TEST_F(ChunkBoardGates, NobodyHearsOfPiecesAfterAFailure) {
  board_.start(operation());
  open(1);
  const auto chunk = board_.take(kPeer);
  ASSERT_TRUE(chunk);
  const int before = wakes_;
  board_.fail(kGroup, 1, {core::ErrorCode::kTimedOut, "too late"});
  EXPECT_GT(wakes_, before);  // what is parked may go on, and is dropped
  EXPECT_TRUE(outcomes_.empty());
  open(3);
  board_.sent(chunk->ticket);
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_FALSE(outcomes_[0]);
  EXPECT_THAT(pieces_, IsEmpty());
}

TEST_F(ChunkBoardGates, APeerThatOpensWhatIsNotThereIsAtFault) {
  peer_opens(2);
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_THAT(faults_[0].message, HasSubstr("rank 9 opened pieces of operation 1 of group 6"));
  board_.start(operation());
  peer_opens(4);
  ASSERT_EQ(faults_.size(), 2U);
  EXPECT_THAT(faults_[1].message, HasSubstr("rank 9 is ready for 4 pieces of all-reduce of 'w'"));
}

TEST_F(ChunkBoardGates, PiecesOutOfOrderAreRefused) {
  Operation wrong = operation();
  std::swap(wrong.schedule.sends.front().piece, wrong.schedule.sends.back().piece);
  board_.start(std::move(wrong));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].error().code, core::ErrorCode::kInternal);
}

}  // namespace
}  // namespace fasthorovod::ops
