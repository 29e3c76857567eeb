// Several lanes of one rank, in threads, over one ChunkWork.
#include "transport/lane_set.h"

#include <gtest/gtest.h>

#include <chrono>

#include "test/transport/fake_chunk_work.h"
#include "test/transport/socket_pair.h"
#include "transport/thread_lane.h"

namespace fasthorovod::transport {
namespace {

using Mode = FakeChunkWork::Mode;

/// A rank with `count` lanes.
class Node final {
 public:
  explicit Node(int count, const LaneOptions& options = {}) : lanes(start(count, options)) {}

  FakeChunkWork work;
  LaneSet lanes;

 private:
  std::vector<std::unique_ptr<LanePlace>> start(int count, const LaneOptions& options) {
    std::vector<std::unique_ptr<LanePlace>> places;
    for (int i = 0; i < count; ++i) {
      places.push_back(std::move(ThreadLane::start(options, work)).value());
    }
    return places;
  }
};

void join(Node& a, int rank_a, Node& b, int rank_b, std::uint32_t flows) {
  for (std::uint32_t index = 0; index < flows; ++index) {
    auto pair = connected_pair(SocketKind::kTcp);
    a.lanes.add_flow(rank_b, index, std::move(pair.first));
    b.lanes.add_flow(rank_a, index, std::move(pair.second));
  }
}

TEST(LaneSet, CarriesEveryChunkOnceBetweenRanksWithDifferentLanes) {
  Node a(1);
  Node b(3);
  join(a, 0, b, 1, 5);
  constexpr std::uint32_t kCount = 500;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    a.work.queue(1, 1, i, 2000 + i, Mode::kAbsorb);
    b.work.queue(0, 2, i, 3000 + i, Mode::kInto);
  }
  a.lanes.wake();
  b.lanes.wake();
  EXPECT_TRUE(a.work.wait_received(kCount));
  EXPECT_TRUE(b.work.wait_received(kCount));
  // The last chunk may have been received before its sender came to count it.
  EXPECT_TRUE(a.work.wait_sent(kCount));
  EXPECT_TRUE(b.work.wait_sent(kCount));
  EXPECT_EQ(a.lanes.statistics().chunks_sent, kCount);
  EXPECT_EQ(b.lanes.statistics().chunks_sent, kCount) << "the sum over three lanes";
}

// Every lane sleeps, and one chunk at a time is posted: whichever lane has a flow to that peer must
// wake.
TEST(LaneSet, WakesTheLaneThatHasTheFlow) {
  Node a(4);
  std::vector<FileDescriptor> peers;
  for (std::uint32_t index = 0; index < 4; ++index) {
    auto pair = connected_pair(SocketKind::kTcp);
    a.lanes.add_flow(10 + static_cast<int>(index), index, std::move(pair.first));
    peers.push_back(std::move(pair.second));
  }
  for (std::uint32_t i = 0; i < 200; ++i) {
    a.work.queue(10 + static_cast<int>(i % 4), 1, i, 8, Mode::kInto);
    a.lanes.wake();
    ASSERT_TRUE(a.work.wait_sent(i + 1));
  }
}

TEST(LaneSet, StartsParkedChunksOfEveryLane) {
  Node a(1);
  Node b(3);
  join(a, 0, b, 1, 3);
  b.work.park_from(1);
  // More than one flow may hold in its buffers, so that all three come to be parked.
  constexpr std::uint32_t kCount = 60;
  for (std::uint32_t i = 0; i < kCount; ++i) a.work.queue(1, 1, i, 1 << 20, Mode::kCount);
  a.lanes.wake();
  ASSERT_TRUE(b.work.wait_parked(3));
  b.work.park_from(2);
  b.lanes.wake();
  EXPECT_TRUE(b.work.wait_received(kCount));
}

TEST(LaneSet, StopsAllLanesAtOnceAlthoughAPeerNeverReads) {
  constexpr auto kLimit = std::chrono::milliseconds(400);
  Node node(8, {.close_limit = kLimit});
  std::vector<FileDescriptor> peers;
  for (std::uint32_t index = 0; index < 8; ++index) {
    auto pair = connected_pair(SocketKind::kTcp, 8 << 10);
    node.lanes.add_flow(1, index, std::move(pair.first));
    peers.push_back(std::move(pair.second));
    node.work.queue(1, 1, index, 8 << 20, Mode::kInto);
  }
  node.lanes.wake();
  while (node.lanes.statistics().bytes_sent < 8 * kFrameHeaderBytes) std::this_thread::yield();
  node.lanes.stop();
  node.lanes.stop();
  EXPECT_EQ(node.work.sent_count(), 0U);
  EXPECT_TRUE(node.work.ended().empty()) << "flows that stop() closed are not reported";
  auto late = connected_pair(SocketKind::kTcp);
  node.lanes.add_flow(1, 3, std::move(late.first));
  node.lanes.wake();
}

TEST(LaneSet, GoesOnSendingOnOtherLanesAfterOneEndedInGoodOrder) {
  Node node(2);
  auto first = connected_pair(SocketKind::kTcp);
  auto second = connected_pair(SocketKind::kTcp);
  node.lanes.add_flow(1, 0, std::move(first.first));
  node.lanes.add_flow(1, 1, std::move(second.first));
  first.second = FileDescriptor();
  ASSERT_TRUE(node.work.wait_ended(1));
  EXPECT_TRUE(node.work.ended()[0].end.clean);
  for (std::uint32_t i = 0; i < 10; ++i) node.work.queue(1, 1, i, 1000, Mode::kInto);
  node.lanes.wake();
  EXPECT_TRUE(node.work.wait_sent(10));
  EXPECT_EQ(read_up_to(second.second, 10 * (1000 + kFrameHeaderBytes)).size(),
            10 * (1000 + kFrameHeaderBytes));
}

}  // namespace
}  // namespace fasthorovod::transport
