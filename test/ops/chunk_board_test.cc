#include "ops/chunk_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <utility>

#include "ops/algorithm_table.h"

namespace fasthorovod::ops {
namespace {

using core::Error;
using core::ErrorCode;
using testing::HasSubstr;
using transport::Arrival;
using transport::FlowEnd;
using transport::FrameHeader;

constexpr int kPeer = 9;      // world rank of the other member
constexpr int kFlows = 3;     // that the two share
constexpr int kStranger = 2;  // a rank that is in no group here
constexpr std::uint32_t kGroup = 6;

/// The board of the first of two ranks, with everything it reports.
class ChunkBoardTest : public testing::Test {
 protected:
  /// An all-reduce of four floats: two chunks of 8 bytes go to the peer and two come, one to
  /// reduce, one to copy.
  Operation operation(std::uint64_t sequence) {
    Operation made;
    made.epoch = 1;
    made.group = kGroup;
    made.sequence = sequence;
    made.fingerprint = 0xBEEF;
    made.title = "all-reduce of 'tensor" + std::to_string(sequence) + "'";
    made.members = {4, kPeer};
    made.buffer = std::as_writable_bytes(std::span(values_));
    made.type = core::DataType::kFloat32;
    made.schedule =
        find_algorithm("ring-allreduce")
            ->build({.size = 2, .element_bytes = 4, .elements = 4, .block_elements = {}});
    made.done = [this](core::Status status) { outcomes_.push_back(std::move(status)); };
    return made;
  }

  /// One chunk of 16 bytes goes to the peer and one comes, to be kept.
  Operation one_hop(std::uint64_t sequence) {
    Operation made = operation(sequence);
    const Algorithm& algorithm = *find_algorithm("one-hop-allreduce");
    const Shape shape{.size = 2, .element_bytes = 4, .elements = 4, .block_elements = {}};
    made.schedule = algorithm.build(shape);
    scratch_.resize(algorithm.scratch_bytes(shape));
    made.scratch = scratch_;
    return made;
  }

  static FrameHeader header(std::uint64_t sequence, std::uint32_t transfer) {
    return {.epoch = 1,
            .group = kGroup,
            .sequence = sequence,
            .transfer = transfer,
            .hop = transfer,
            .payload_bytes = 8,
            .fingerprint = 0xBEEF};
  }

  /// What arrives in a healthy run of an operation, until it is done.
  void complete(std::uint64_t sequence) {
    while (const auto chunk = board_.take(kPeer)) board_.sent(chunk->ticket);
    for (std::uint32_t transfer = 0; transfer < 2; ++transfer) {
      board_.received(board_.arrive(kPeer, header(sequence, transfer))->ticket);
      while (const auto chunk = board_.take(kPeer)) board_.sent(chunk->ticket);
    }
  }

  void expect_refused(int peer, const FrameHeader& refused, const std::string& words) {
    const auto arrival = board_.arrive(peer, refused);
    ASSERT_FALSE(arrival) << words;
    EXPECT_EQ(arrival.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(arrival.error().culprit, peer);
    EXPECT_THAT(arrival.error().message, HasSubstr("rank " + std::to_string(peer)));
    EXPECT_THAT(arrival.error().message, HasSubstr(words));
  }

  static FlowEnd clean_end() { return {.clean = true, .error = {}}; }
  void end_flows(int count) {
    for (int flow = 0; flow < count; ++flow) board_.flow_ended(kPeer, clean_end());
  }
  static FlowEnd broken_end(ErrorCode code) {
    return {.clean = false, .error = {code, "rank 9 hung up", kPeer}};
  }

  /// Two flows a pair of ranks; departures of members are not faults.
  ChunkBoard board_with_departures() {
    OrderedHooks hooks;
    hooks.departure = [this](const Departure& departure) { departures_.push_back(departure); };
    return {[this](int, Error error) { faults_.push_back(std::move(error)); }, [] {},
            std::move(hooks), [](int) { return 2; }};
  }

  std::vector<float> values_ = {1, 2, 3, 4};
  std::vector<std::byte> scratch_;
  std::vector<core::Status> outcomes_;
  std::vector<Error> faults_;
  std::vector<Departure> departures_;
  int wakes_ = 0;
  ChunkBoard board_{[this](int peer, Error error) {
                      EXPECT_EQ(peer, kPeer);
                      faults_.push_back(std::move(error));
                    },
                    [this] { ++wakes_; },
                    {},
                    [](int peer) { return peer == kPeer ? kFlows : 1; }};
};

TEST_F(ChunkBoardTest, OperationWithoutTransfersIsDoneInsideStart) {
  Operation alone = operation(1);
  alone.members = {4};
  alone.schedule = {};
  board_.start(std::move(alone));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_TRUE(outcomes_[0]);
  EXPECT_EQ(board_.in_flight(), 0U);
}

TEST_F(ChunkBoardTest, KeepsWhatComesUntilAllIsThereAndTheOwnValuesHaveLeft) {
  board_.start(one_hop(1));
  const auto leaving = board_.take(kPeer);
  FrameHeader coming = header(1, 0);
  coming.payload_bytes = 16;
  const auto arrival = board_.arrive(kPeer, coming);
  ASSERT_TRUE(arrival);
  ASSERT_EQ(arrival->kind, Arrival::Kind::kInto);
  const std::vector<float> theirs = {10, 20, 30, 40};
  std::memcpy(arrival->into.data(), theirs.data(), 16);
  board_.received(arrival->ticket);
  EXPECT_EQ(values_, (std::vector<float>{1, 2, 3, 4})) << "they are still to be sent";
  EXPECT_TRUE(outcomes_.empty());
  board_.sent(leaving->ticket);
  EXPECT_EQ(values_, (std::vector<float>{11, 22, 33, 44}));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_TRUE(outcomes_[0]);
}

TEST_F(ChunkBoardTest, MakesNoSumOfAnOperationThatFailed) {
  board_.start(one_hop(1));
  const auto leaving = board_.take(kPeer);
  FrameHeader coming = header(1, 0);
  coming.payload_bytes = 16;
  const auto arrival = board_.arrive(kPeer, coming);
  ASSERT_TRUE(arrival);
  board_.fail(kGroup, 1, {ErrorCode::kTimedOut, "too late"});
  board_.sent(leaving->ticket);
  board_.received(arrival->ticket);
  EXPECT_EQ(values_, (std::vector<float>{1, 2, 3, 4}));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_FALSE(outcomes_[0]);
}

TEST_F(ChunkBoardTest, RefusesASumWithoutItsScratch) {
  Operation made = one_hop(1);
  made.scratch = made.scratch.first(8);
  board_.start(std::move(made));
  ASSERT_EQ(outcomes_.size(), 1U);
  ASSERT_FALSE(outcomes_[0]);
  EXPECT_EQ(outcomes_[0].error().code, ErrorCode::kInternal);
}

TEST_F(ChunkBoardTest, KnowsWhatIsLeftForAPeer) {
  EXPECT_EQ(board_.backlog(kPeer).untaken, 0U);
  board_.start(operation(1));
  board_.start(operation(2));
  EXPECT_EQ(board_.backlog(kPeer).next, 8U);
  EXPECT_EQ(board_.backlog(kPeer).untaken, 32U) << "also what waits for a receive";
  EXPECT_EQ(board_.backlog(kStranger).untaken, 0U);
  const auto chunk = board_.take(kPeer);
  EXPECT_EQ(board_.backlog(kPeer).untaken, 24U);
  board_.sent(chunk->ticket);
  EXPECT_EQ(board_.backlog(kPeer).untaken, 24U);
  (void)board_.take(kPeer);
  EXPECT_EQ(board_.backlog(kPeer).next, 0U) << "nothing may leave now";
  EXPECT_EQ(board_.backlog(kPeer).untaken, 16U);
  board_.fail(kGroup, 1, {ErrorCode::kTimedOut, "too late"});
  EXPECT_EQ(board_.backlog(kPeer).untaken, 8U);
  board_.fail_all({ErrorCode::kPeerLost, "over", kPeer});
}

TEST_F(ChunkBoardTest, SendsWhatMayGoAndTheRestOnceItsReceiveIsComplete) {
  board_.start(operation(1));
  EXPECT_TRUE(board_.has_work(kPeer));
  const auto first = board_.take(kPeer);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->header.transfer, 0U);
  EXPECT_EQ(first->header.payload_bytes, 8U);
  EXPECT_EQ(first->payload.data(), std::as_bytes(std::span(values_)).data());
  EXPECT_FALSE(board_.take(kPeer));
  const auto arrival = board_.arrive(kPeer, header(1, 0));
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->kind, Arrival::Kind::kAbsorb);
  const std::vector<float> sent = {10, 20};
  board_.absorb(arrival->ticket, 0, std::as_bytes(std::span(sent)));
  EXPECT_FALSE(board_.has_work(kPeer));
  const int wakes = wakes_;
  board_.received(arrival->ticket);
  EXPECT_EQ(wakes_, wakes + 1);
  EXPECT_EQ(board_.take(kPeer)->header.transfer, 1U);
  EXPECT_EQ(values_, (std::vector<float>{1, 2, 13, 24}));
}

TEST_F(ChunkBoardTest, CopiesStraightIntoPlaceAndEndsOnce) {
  board_.start(operation(1));
  const auto arrival = board_.arrive(kPeer, header(1, 1));
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->kind, Arrival::Kind::kInto);
  EXPECT_EQ(arrival->into.data(), std::as_bytes(std::span(values_)).data());
  EXPECT_EQ(arrival->into.size(), 8U);
  board_.received(arrival->ticket);
  board_.received(board_.arrive(kPeer, header(1, 0))->ticket);
  EXPECT_TRUE(outcomes_.empty());
  while (const auto chunk = board_.take(kPeer)) board_.sent(chunk->ticket);
  EXPECT_EQ(outcomes_.size(), 1U);
}

TEST_F(ChunkBoardTest, ChunkOfALaterOperationParksUntilItStarts) {
  EXPECT_EQ(board_.arrive(kPeer, header(1, 0))->kind, Arrival::Kind::kPark);
  board_.start(operation(1));
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(board_.arrive(kPeer, header(2, 0))->kind, Arrival::Kind::kPark);
  EXPECT_EQ(board_.arrive(kPeer, header(1, 0))->kind, Arrival::Kind::kAbsorb);
  board_.start(operation(3));  // 2 was never to run here
  expect_refused(kPeer, header(2, 0), "over");
}

TEST_F(ChunkBoardTest, RefusesWhatTheScheduleDoesNotExpect) {
  board_.start(operation(1));
  complete(1);
  board_.start(operation(2));
  const std::string title = "all-reduce of 'tensor2'";
  FrameHeader wrong = header(2, 0);
  wrong.epoch = 7;
  expect_refused(kPeer, wrong, "epoch 7");
  expect_refused(kPeer, header(1, 0), "operation 1 of group 6");
  wrong = header(2, 0);
  wrong.fingerprint = 1;
  expect_refused(kPeer, wrong, title + " with fingerprint 00000001");
  expect_refused(kPeer, header(2, 2), title + " numbered 2, but only 2");
  expect_refused(kStranger, header(2, 0), title + " numbered 0, but only 0");
  wrong = header(2, 0);
  wrong.payload_bytes = 12;
  expect_refused(kPeer, wrong, title + " numbered 0 with 12 bytes instead of 8");
  wrong = header(2, 0);
  wrong.hop = 1;
  expect_refused(kPeer, wrong, title + " numbered 0 at hop 1 instead of 0");
  EXPECT_TRUE(board_.arrive(kPeer, header(2, 0)));
  expect_refused(kPeer, header(2, 0), title + " numbered 0 twice");
  EXPECT_EQ(values_, (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(ChunkBoardTest, OtherEpochOfAGroupThatHasNotStartedIsRefusedToo) {
  board_.start(operation(1));
  FrameHeader wrong = header(1, 0);
  wrong.group = kGroup + 1;
  wrong.epoch = 2;
  expect_refused(kPeer, wrong, "epoch 2");
}

TEST_F(ChunkBoardTest, CleanEndOfAllFlowsButOneIsNoNews) {
  board_.start(operation(1));
  end_flows(kFlows - 1);
  EXPECT_TRUE(faults_.empty());
  complete(1);
  EXPECT_TRUE(outcomes_.at(0));
}

TEST_F(ChunkBoardTest, CleanEndOfTheLastFlowIsAFaultWhileTheOperationNeedsThePeer) {
  board_.start(operation(1));
  end_flows(kFlows);
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_EQ(faults_[0].code, ErrorCode::kPeerLost);
  EXPECT_EQ(faults_[0].culprit, kPeer);
  EXPECT_THAT(faults_[0].message, HasSubstr("all-reduce of 'tensor1'"));
  EXPECT_THAT(faults_[0].message, HasSubstr("rank 9 closed its last flow"));
}

TEST_F(ChunkBoardTest, OwingAPeerIsNeedingIt) {
  board_.start(operation(1));
  for (std::uint32_t transfer = 0; transfer < 2; ++transfer) {
    board_.received(board_.arrive(kPeer, header(1, transfer))->ticket);
  }
  board_.sent(board_.take(kPeer)->ticket);
  const auto last = board_.take(kPeer);
  end_flows(kFlows);
  EXPECT_EQ(faults_.size(), 1U);
  board_.sent(last->ticket);
  EXPECT_EQ(outcomes_.size(), 1U);
}

TEST_F(ChunkBoardTest, EndWithNothingInFlightIsRememberedForLaterOperations) {
  board_.start(operation(1));
  complete(1);
  end_flows(kFlows - 1);
  board_.flow_ended(kPeer, broken_end(ErrorCode::kPeerLost));
  EXPECT_TRUE(faults_.empty());
  board_.start(operation(2));
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_EQ(faults_[0].culprit, kPeer);
  EXPECT_THAT(faults_[0].message, HasSubstr("all-reduce of 'tensor2' needs rank 9"));
}

TEST_F(ChunkBoardTest, BrokenFlowIsAFaultThoughOthersRemain) {
  board_.start(operation(1));
  board_.flow_ended(kPeer, broken_end(ErrorCode::kSystem));
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_EQ(faults_[0].code, ErrorCode::kSystem);
  EXPECT_THAT(faults_[0].message, HasSubstr("all-reduce of 'tensor1': rank 9 hung up"));
}

TEST_F(ChunkBoardTest, ProtocolErrorIsAFaultThoughNobodyWaits) {
  board_.flow_ended(kPeer, broken_end(ErrorCode::kProtocol));
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_EQ(faults_[0].code, ErrorCode::kProtocol);
}

TEST_F(ChunkBoardTest, EndOfAFlowToARankThatNobodyNeedsIsNoFault) {
  board_.start(operation(1));
  board_.flow_ended(kStranger, broken_end(ErrorCode::kPeerLost));
  EXPECT_TRUE(faults_.empty());
}

// A chunk that is cut off must not keep the operation from ending.
TEST_F(ChunkBoardTest, OrderedOperationCanFailOnceAllFlowsToARankThatLeftHaveEnded) {
  ChunkBoard board = board_with_departures();
  Operation ordered = operation(1);
  ordered.group = wire_group(kGroup, Door::kOrdered);
  board.start(std::move(ordered));
  FrameHeader chunk = header(1, 0);
  chunk.group = wire_group(kGroup, Door::kOrdered);
  ASSERT_TRUE(board.arrive(kPeer, chunk));
  board.depart(kPeer, {ErrorCode::kShutdown, "rank 9 has shut down", kPeer}, 2);
  board.flow_ended(kPeer, broken_end(ErrorCode::kPeerLost));
  EXPECT_TRUE(departures_.empty());
  board.flow_ended(kPeer, clean_end());
  ASSERT_EQ(departures_.size(), 1U);
  EXPECT_EQ(departures_[0].error.message, "during all-reduce of 'tensor1': rank 9 has shut down");
  board.fail(chunk.group, chunk.sequence, departures_[0].error);
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].error().code, ErrorCode::kShutdown);
  EXPECT_TRUE(faults_.empty());
}

// It was the third member's last word that made rank 9 end.
TEST_F(ChunkBoardTest, WhoVanishesAfterAMemberLeftIsNotBlamed) {
  constexpr int kLeaver = 0;
  ChunkBoard board = board_with_departures();
  Operation ordered = operation(1);
  ordered.group = wire_group(kGroup, Door::kOrdered);
  ordered.members.push_back(kLeaver);
  board.start(std::move(ordered));
  board.depart(kLeaver, {ErrorCode::kShutdown, "rank 0 has shut down", kLeaver}, 0);
  EXPECT_TRUE(departures_.empty()) << "the schedule does not need it";
  board.flow_ended(kPeer, clean_end());
  board.flow_ended(kPeer, clean_end());
  ASSERT_EQ(faults_.size(), 1U);
  board.depart(kPeer, faults_[0], 2);
  ASSERT_EQ(departures_.size(), 1U);
  EXPECT_EQ(departures_[0].error.culprit, kLeaver);
  EXPECT_EQ(departures_[0].error.code, ErrorCode::kShutdown);
  EXPECT_EQ(departures_[0].error.message, "during all-reduce of 'tensor1': rank 0 has shut down");
}

TEST_F(ChunkBoardTest, FailAllEndsEveryOperationOnceAndTheBoardForGood) {
  board_.start(operation(1));
  board_.start(operation(2));
  const auto chunk = board_.take(kPeer);
  const auto arrival = board_.arrive(kPeer, header(1, 0));
  board_.fail_all({ErrorCode::kPeerLost, "rank 7 is gone", 7});
  ASSERT_EQ(outcomes_.size(), 2U);
  for (const auto& outcome : outcomes_) EXPECT_EQ(outcome.error().culprit, 7);
  EXPECT_EQ(board_.in_flight(), 0U);
  EXPECT_FALSE(board_.has_work(kPeer));
  EXPECT_FALSE(board_.take(kPeer));
  board_.sent(chunk->ticket);
  board_.absorb(arrival->ticket, 0, std::as_bytes(std::span(values_)).first(8));
  board_.received(arrival->ticket);
  EXPECT_EQ(values_, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(board_.arrive(kPeer, header(3, 0)).error().culprit, 7);
  board_.start(operation(3));
  ASSERT_EQ(outcomes_.size(), 3U);
  EXPECT_EQ(outcomes_[2].error().culprit, 7);
  board_.flow_ended(kPeer, broken_end(ErrorCode::kProtocol));
  EXPECT_TRUE(faults_.empty());
}

TEST_F(ChunkBoardTest, OperationOutOfOrderOrBeyondItsBufferIsDoneAtOnce) {
  board_.start(operation(2));
  board_.start(operation(2));
  Operation too_large = operation(3);
  too_large.buffer = too_large.buffer.first(12);
  board_.start(std::move(too_large));
  Operation cut_element = operation(3);
  cut_element.type = core::DataType::kFloat64;
  cut_element.schedule.sends[0].span.offset = 4;
  board_.start(std::move(cut_element));
  Operation no_such_member = operation(3);
  no_such_member.members = {4};
  board_.start(std::move(no_such_member));
  Operation other_epoch = operation(3);
  other_epoch.epoch = 2;
  board_.start(std::move(other_epoch));
  ASSERT_EQ(outcomes_.size(), 5U);
  for (const auto& outcome : outcomes_) EXPECT_EQ(outcome.error().code, ErrorCode::kInternal);
  EXPECT_EQ(board_.in_flight(), 1U);
}

TEST_F(ChunkBoardTest, TenThousandOperationsLeaveNoMemoryBehind) {
  const auto run = [this](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
      board_.start(operation(sequence));
      complete(sequence);
    }
    outcomes_.clear();
    outcomes_.shrink_to_fit();
  };
  run(1, 100);
  const std::size_t before = mallinfo2().uordblks;
  run(101, 10'100);
  EXPECT_LT(mallinfo2().uordblks, before + 4096);
  EXPECT_EQ(board_.in_flight(), 0U);
}

}  // namespace
}  // namespace fasthorovod::ops
