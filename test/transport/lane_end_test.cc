// How flows end: in good order, broken off, reset, or closed because of what the peer sent.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <vector>

#include "test/transport/lane_fixture.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using Mode = FakeChunkWork::Mode;

std::vector<std::byte> first_bytes(std::vector<std::byte> bytes, std::size_t count) {
  bytes.resize(count);
  return bytes;
}

class LaneEnd : public testing::TestWithParam<SocketKind> {
 protected:
  FileDescriptor flow() { return raw_flow(node_, 7, GetParam()); }

  // The one end there is.
  FlowEnd the_end() {
    EXPECT_TRUE(node_.work.wait_ended(1));
    std::this_thread::sleep_for(10ms);
    const auto ends = node_.work.ended();
    EXPECT_EQ(ends.size(), 1U);
    if (ends.empty()) return {};
    EXPECT_EQ(ends[0].peer, 7);
    EXPECT_EQ(ends[0].end.error.culprit, 7);
    EXPECT_NE(ends[0].end.error.message.find("rank 7"), std::string::npos)
        << ends[0].end.error.message;
    return ends[0].end;
  }

  LaneNode node_;
};

INSTANTIATE_TEST_SUITE_P(Lane, LaneEnd, testing::Values(SocketKind::kUnix, SocketKind::kTcp),
                         [](const auto& instance) {
                           return instance.param == SocketKind::kUnix ? "unix" : "tcp";
                         });

TEST_P(LaneEnd, IsCleanBetweenFrames) {
  auto peer = flow();
  ASSERT_TRUE(write_all(peer, frame(1, 0, 100, Mode::kAbsorb)));
  peer = FileDescriptor();
  const auto end = the_end();
  EXPECT_TRUE(end.clean);
  EXPECT_EQ(end.error.code, core::ErrorCode::kPeerLost);
  EXPECT_EQ(node_.work.received_count(), 1U);
}

TEST_P(LaneEnd, IsNotCleanInsideAHeader) {
  auto peer = flow();
  ASSERT_TRUE(write_all(peer, first_bytes(frame(1, 0, 100, Mode::kAbsorb), 20)));
  peer = FileDescriptor();
  const auto end = the_end();
  EXPECT_FALSE(end.clean);
  EXPECT_NE(end.error.message.find("inside a header"), std::string::npos);
}

TEST_P(LaneEnd, IsNotCleanInsideAPayload) {
  for (const auto mode : {Mode::kInto, Mode::kAbsorb}) {
    LaneNode node;
    auto peer = raw_flow(node, 7, GetParam());
    const auto bytes = frame(1, 0, 100000, mode);
    ASSERT_TRUE(write_all(peer, first_bytes(bytes, bytes.size() - 13)));
    peer = FileDescriptor();
    ASSERT_TRUE(node.work.wait_ended(1));
    const auto end = node.work.ended()[0].end;
    EXPECT_FALSE(end.clean);
    EXPECT_EQ(end.error.code, core::ErrorCode::kPeerLost);
    EXPECT_NE(end.error.message.find("13 bytes before the end"), std::string::npos)
        << end.error.message;
  }
}

TEST_P(LaneEnd, NamesThePeerThatSendsAWrongMagic) {
  const auto peer = flow();
  auto bytes = frame(1, 0, 10, Mode::kInto);
  bytes[0] = std::byte{0};
  ASSERT_TRUE(write_all(peer, bytes));
  const auto end = the_end();
  EXPECT_FALSE(end.clean);
  EXPECT_EQ(end.error.code, core::ErrorCode::kProtocol);
}

TEST_P(LaneEnd, NamesThePeerThatSendsAWrongSum) {
  const auto peer = flow();
  auto bytes = frame(1, 0, 10, Mode::kInto);
  bytes[30] ^= std::byte{1};
  ASSERT_TRUE(write_all(peer, bytes));
  EXPECT_EQ(the_end().error.code, core::ErrorCode::kProtocol);
}

TEST_P(LaneEnd, TurnsAwayWhatTheWorkRejects) {
  const auto peer = flow();
  node_.work.reject(3);
  ASSERT_TRUE(write_all(peer, frame(2, 0, 10, Mode::kInto)));
  ASSERT_TRUE(write_all(peer, frame(3, 0, 10, Mode::kInto)));
  ASSERT_TRUE(node_.work.wait_ended(1));
  const auto end = node_.work.ended()[0].end;
  EXPECT_EQ(end.error.code, core::ErrorCode::kProtocol);
  EXPECT_EQ(end.error.culprit, 7);
  EXPECT_EQ(node_.work.received_count(), 1U);
  EXPECT_TRUE(read_up_to(peer, 1).empty()) << "the flow is closed";
}

TEST(Lane, SeesAReset) {
  LaneNode node;
  auto peer = raw_flow(node, 7, SocketKind::kTcp);
  ASSERT_TRUE(write_all(peer, first_bytes(frame(1, 0, 100000, Mode::kInto), 5000)));
  reset(std::move(peer));
  ASSERT_TRUE(node.work.wait_ended(1));
  const auto end = node.work.ended()[0].end;
  EXPECT_FALSE(end.clean);
  EXPECT_EQ(end.error.code, core::ErrorCode::kPeerLost);
  EXPECT_EQ(end.error.culprit, 7);
}

TEST(Lane, SeesAResetWhileItSends) {
  LaneNode node;
  auto peer = raw_flow(node, 7, SocketKind::kTcp, 8 << 10);
  node.send(7, 1, 0, 8 << 20, Mode::kInto);
  ASSERT_FALSE(read_up_to(peer, 100).empty());
  reset(std::move(peer));
  ASSERT_TRUE(node.work.wait_ended(1));
  EXPECT_FALSE(node.work.ended()[0].end.clean);
  EXPECT_EQ(node.work.sent_count(), 0U);
}

// A chunk can get lost on a flow whose reading is parked for an operation that waits for that very
// chunk.
TEST(Lane, SeesAResetWhileItSendsAndIsParked) {
  LaneNode node;
  auto peer = raw_flow(node, 7, SocketKind::kTcp, 8 << 10);
  node.work.park_from(2);
  ASSERT_TRUE(write_all(peer, frame(2, 0, 10, Mode::kInto)));
  ASSERT_TRUE(node.work.wait_parked(1));
  node.send(7, 1, 0, 8 << 20, Mode::kInto);
  ASSERT_FALSE(read_up_to(peer, 100).empty());
  reset(std::move(peer));
  ASSERT_TRUE(node.work.wait_ended(1));
  EXPECT_FALSE(node.work.ended()[0].end.clean);
}

TEST(Lane, SendsWhatItOwesAfterThePeerEndedItsDirection) {
  LaneNode node;
  const auto peer = raw_flow(node, 7, SocketKind::kTcp, 8 << 10);
  constexpr std::uint32_t kCount = 20;
  constexpr std::size_t kSize = 100000;
  for (std::uint32_t i = 0; i < kCount; ++i) node.work.queue(7, 1, i, kSize, Mode::kInto);
  node.lane().wake();
  ASSERT_FALSE(read_up_to(peer, 100).empty());
  ::shutdown(peer.get(), SHUT_WR);
  std::this_thread::sleep_for(30ms);
  EXPECT_TRUE(node.work.ended().empty());
  const auto rest = read_up_to(peer, kCount * (kSize + kFrameHeaderBytes) - 100);
  EXPECT_EQ(rest.size(), kCount * (kSize + kFrameHeaderBytes) - 100);
  ASSERT_TRUE(node.work.wait_ended(1));
  EXPECT_TRUE(node.work.ended()[0].end.clean);
  EXPECT_EQ(node.work.sent_count(), kCount);
  EXPECT_TRUE(read_up_to(peer, 1).empty()) << "the flow is closed";
}

TEST(Lane, ReadsWhatCameBeforeSendingFailed) {
  LaneNode node;
  auto peer = raw_flow(node, 7, SocketKind::kUnix);
  node.work.park_from(1);
  ASSERT_TRUE(write_all(peer, frame(1, 0, 100, Mode::kInto)));
  ASSERT_TRUE(write_all(peer, frame(1, 1, 100, Mode::kInto)));
  ASSERT_TRUE(node.work.wait_parked(1));
  peer = FileDescriptor();
  node.work.park_from(2);  // first: the lane may come to the chunk before it is woken
  node.work.queue(7, 1, 0, 1000, Mode::kInto);
  node.lane().wake();
  ASSERT_TRUE(node.work.wait_ended(1));
  EXPECT_FALSE(node.work.ended()[0].end.clean) << "a chunk of ours was lost";
  EXPECT_EQ(node.work.received_count(), 2U);
}

TEST(Lane, ReportsTheEndOfEachFlow) {
  LaneNode node;
  std::vector<FileDescriptor> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(raw_flow(node, 7, SocketKind::kTcp));
  const auto other = raw_flow(node, 8, SocketKind::kTcp);
  for (std::size_t i = 0; i < 3; ++i) {
    peers[i] = FileDescriptor();
    ASSERT_TRUE(node.work.wait_ended(i + 1));
    EXPECT_EQ(node.work.ended()[i].peer, 7);
    EXPECT_TRUE(node.work.ended()[i].end.clean);
  }
  node.send(8, 1, 0, 10, Mode::kInto);
  EXPECT_EQ(read_up_to(other, 10 + kFrameHeaderBytes).size(), 10 + kFrameHeaderBytes)
      << "others go on";
}

}  // namespace
}  // namespace fasthorovod::transport
