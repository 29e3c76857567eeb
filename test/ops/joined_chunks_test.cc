// Chunks that travel as one, on the boards of both ends. That every algorithm bears it shows in the
// tests that join at random (board_network.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/algorithm_table.h"
#include "ops/chunk_board.h"

namespace fasthorovod::ops {
namespace {

using testing::HasSubstr;
using transport::Arrival;
using transport::FrameHeader;

constexpr std::uint64_t kChunk = 8;
constexpr std::uint64_t kAll = 1 << 20;

/// The board of rank 0 of two, in an all-reduce of 12 floats: three chunks of 8 bytes go to the
/// peer to be reduced and three come; then three each way to be copied.
class JoinedChunks : public testing::Test {
 protected:
  JoinedChunks() {
    std::iota(values_.begin(), values_.end(), 0.0F);
    Operation operation;
    operation.epoch = 1;
    operation.group = 6;
    operation.sequence = 1;
    operation.fingerprint = 0xBEEF;
    operation.title = "all-reduce";
    operation.members = {0, 1};
    operation.buffer = std::as_writable_bytes(std::span(values_));
    operation.type = core::DataType::kFloat32;
    operation.schedule = find_algorithm("ring-allreduce")
                             ->build({.size = 2,
                                      .element_bytes = 4,
                                      .elements = values_.size(),
                                      .block_elements = {},
                                      .chunk_bytes = kChunk});
    operation.done = [this](const core::Status& status) { done_.push_back(status.has_value()); };
    board_.start(std::move(operation));
  }

  static FrameHeader header(std::uint32_t transfer, std::uint64_t bytes) {
    return {.epoch = 1,
            .group = 6,
            .sequence = 1,
            .transfer = transfer,
            .hop = transfer / 3,
            .payload_bytes = bytes,
            .fingerprint = 0xBEEF};
  }

  void expect_refused(const FrameHeader& refused, const std::string& words) {
    const auto arrival = board_.arrive(1, refused);
    ASSERT_FALSE(arrival) << words;
    EXPECT_EQ(arrival.error().code, core::ErrorCode::kProtocol);
    EXPECT_THAT(arrival.error().message, HasSubstr(words));
  }

  void receive(std::uint32_t transfer, std::uint64_t bytes) {
    const auto arrival = board_.arrive(1, header(transfer, bytes));
    ASSERT_TRUE(arrival);
    board_.received(arrival->ticket);
  }

  std::vector<float> values_ = std::vector<float>(12);
  std::vector<bool> done_;
  int wakes_ = 0;
  ChunkBoard board_{[](int, const core::Error&) { ADD_FAILURE(); }, [this] { ++wakes_; }};
};

TEST_F(JoinedChunks, LeaveUnderOneHeader) {
  auto chunk = board_.take(1);
  ASSERT_TRUE(chunk);
  board_.join_next(1, *chunk, kAll);
  EXPECT_EQ(chunk->ticket.count, 3U);
  EXPECT_EQ(chunk->header.transfer, 0U);
  EXPECT_EQ(chunk->header.payload_bytes, 3 * kChunk);
  EXPECT_EQ(chunk->payload.data(), std::as_bytes(std::span(values_)).data());
  EXPECT_EQ(chunk->payload.size(), 3 * kChunk);
  EXPECT_FALSE(board_.has_work(1));
  EXPECT_EQ(board_.backlog(1).untaken, 3 * kChunk) << "the second half";
}

TEST_F(JoinedChunks, AreNoMoreThanWasAskedFor) {
  auto chunk = board_.take(1);
  ASSERT_TRUE(chunk);
  board_.join_next(1, *chunk, 2 * kChunk + kChunk / 2);
  EXPECT_EQ(chunk->payload.size(), 2 * kChunk);
  board_.join_next(1, *chunk, 0);
  EXPECT_EQ(chunk->payload.size(), 2 * kChunk);
  const auto last = board_.take(1);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->header.transfer, 2U);
}

TEST_F(JoinedChunks, AreOfOneHop) {
  auto first = board_.take(1);
  board_.join_next(1, *first, 2 * kChunk);
  receive(0, 3 * kChunk);
  auto third = board_.take(1);
  ASSERT_TRUE(third);
  board_.join_next(1, *third, kAll);
  EXPECT_EQ(third->ticket.count, 1U) << "what comes next goes on in memory, but is of hop 1";
}

TEST_F(JoinedChunks, AreThoseThatFollowTheFirstWhereverTheyWait) {
  receive(0, 2 * kChunk);
  const auto oldest = board_.take(1);
  ASSERT_TRUE(oldest);
  EXPECT_EQ(oldest->header.transfer, 0U);
  auto fresh = board_.take(1, transport::TakeOrder::kFreshFirst);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->header.transfer, 3U) << "it waited for what has just come";
  board_.join_next(1, *fresh, kAll);
  EXPECT_EQ(fresh->ticket.count, 2U);
  auto next = board_.take(1);
  ASSERT_TRUE(next);
  board_.join_next(1, *next, kAll);
  EXPECT_EQ(next->header.transfer, 1U);
  EXPECT_EQ(next->ticket.count, 2U);
}

TEST_F(JoinedChunks, ComeAsOneAndLetAllGoThatWaited) {
  const auto arrival = board_.arrive(1, header(0, 3 * kChunk));
  ASSERT_TRUE(arrival);
  ASSERT_EQ(arrival->kind, Arrival::Kind::kAbsorb);
  EXPECT_EQ(arrival->into.size(), 3 * kChunk);
  const std::vector<float> theirs(6, 100.0F);
  const auto bytes = std::as_bytes(std::span(theirs));
  board_.absorb(arrival->ticket, 0, bytes.first(16));
  board_.absorb(arrival->ticket, 16, bytes.subspan(16));
  const int wakes = wakes_;
  board_.received(arrival->ticket);
  EXPECT_EQ(wakes_, wakes + 1);
  EXPECT_EQ(values_[5], 5.0F);
  EXPECT_EQ(values_[6], 106.0F);
  EXPECT_EQ(values_[11], 111.0F);
  std::uint32_t chunks = 0;
  while (const auto chunk = board_.take(1)) {
    board_.sent(chunk->ticket);
    ++chunks;
  }
  EXPECT_EQ(chunks, 6U);
  EXPECT_TRUE(done_.empty());
  receive(3, 3 * kChunk);
  EXPECT_EQ(done_, std::vector<bool>{true});
}

TEST_F(JoinedChunks, CountOneByOneWhenTheyHaveLeft) {
  auto chunk = board_.take(1);
  board_.join_next(1, *chunk, kAll);
  receive(0, 3 * kChunk);
  receive(3, 3 * kChunk);
  auto second = board_.take(1);
  ASSERT_TRUE(second);
  board_.join_next(1, *second, kAll);
  EXPECT_EQ(second->ticket.count, 3U);
  board_.sent(second->ticket);
  EXPECT_TRUE(done_.empty());
  board_.sent(chunk->ticket);
  EXPECT_EQ(done_, std::vector<bool>{true});
}

TEST_F(JoinedChunks, MayBeSomeOfAll) {
  receive(0, kChunk);
  receive(1, 2 * kChunk);
  receive(3, 2 * kChunk);
  receive(5, kChunk);
  while (const auto chunk = board_.take(1)) board_.sent(chunk->ticket);
  EXPECT_EQ(done_, std::vector<bool>{true});
}

TEST_F(JoinedChunks, AreRefusedWhenTheirBytesMakeUpNoWholeChunks) {
  expect_refused(header(0, 12), "with 12 bytes instead of 8");
  expect_refused(header(0, 4 * kChunk), "with 32 bytes instead of 8");
  expect_refused(header(5, 2 * kChunk), "with 16 bytes instead of 8");
}

TEST_F(JoinedChunks, AreRefusedWhenOneOfThemCameAlready) {
  receive(1, kChunk);
  expect_refused(header(0, 3 * kChunk), "numbered 1 twice");
  receive(0, kChunk);
  receive(2, kChunk);
}

}  // namespace
}  // namespace fasthorovod::ops
