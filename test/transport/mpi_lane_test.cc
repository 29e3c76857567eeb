// A lane over MPI, with an MPI inside this process: delivery, parking, ends.
#include "transport/mpi_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "test/transport/fake_chunk_work.h"
#include "test/transport/fake_mpi.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using Mode = FakeChunkWork::Mode;

constexpr std::uint64_t kMark = 77;
constexpr std::array<std::size_t, 14> kSizes = {
    0, 1, 7, 8, 9, 48, 4096, 65537, 262143, 262144, 262145, 524288, 1048576, 1048583};

// One rank: its lane, and the work that the lane asks.
class Node final {
 public:
  Node(FakeMpiNetwork& network, int rank, std::chrono::milliseconds close_limit = 30s)
      : blocks_(network, rank),
        lane_({.rank = rank, .size = network.size(), .mark = kMark, .close_limit = close_limit},
              blocks_, work,
              [this](std::vector<MpiBlockOnItsWay> left) { kept = std::move(left); }) {
    for (int peer = 0; peer < network.size(); ++peer) {
      if (peer != rank) lane_.add_peer(peer);
    }
  }

  void send(int peer, std::uint64_t sequence, std::uint32_t transfer, std::size_t size, Mode mode) {
    work.queue(peer, sequence, transfer, size, mode);
    lane_.wake();
  }
  MpiLane& lane() { return lane_; }
  MpiBlocks& blocks() { return blocks_; }

  FakeChunkWork work;
  std::vector<MpiBlockOnItsWay> kept;

 private:
  FakeBlocks blocks_;
  MpiLane lane_;
};

// Every size in both modes; returns the number of chunks.
std::size_t send_all_sizes(Node& node, int peer, std::uint64_t sequence) {
  std::uint32_t transfer = 0;
  for (const auto size : kSizes) {
    node.send(peer, sequence, transfer++, size, Mode::kInto);
    node.send(peer, sequence, transfer++, size, Mode::kAbsorb);
  }
  return transfer;
}

// What a peer that is no lane sends.
void post(FakeMpiNetwork& network, MpiBlockKind kind, std::uint64_t mark,
          const FrameHeader& header = {}, std::size_t payload = 0) {
  auto block = std::make_unique<MpiBlock>();
  block->head() = {.mark = mark, .kind = kind, .header = encode(header)};
  network.send(1, 0, block->bytes(sizeof(MpiBlockHead) + payload), true);
}

FlowEnd the_end(Node& node) {
  EXPECT_TRUE(node.work.wait_ended(1));
  const auto ends = node.work.ended();
  if (ends.empty()) return {};
  EXPECT_EQ(ends[0].peer, 1);
  EXPECT_EQ(ends[0].end.error.culprit, 1);
  return ends[0].end;
}

TEST(MpiLane, BringsEverySizeBothWays) {
  FakeMpiNetwork network(2);
  Node a(network, 0);
  Node b(network, 1);
  const auto count = send_all_sizes(a, 1, 10);
  send_all_sizes(b, 0, 20);
  EXPECT_TRUE(b.work.wait_received(count));
  EXPECT_TRUE(a.work.wait_received(count));
  EXPECT_TRUE(a.work.wait_sent(count));
  EXPECT_EQ(a.lane().statistics().chunks_sent, count);
  EXPECT_EQ(a.lane().statistics().bytes_sent, b.lane().statistics().bytes_received);
}

TEST(MpiLane, TakesNothingBeforeItIsWoken) {
  FakeMpiNetwork network(2);
  post(network, MpiBlockKind::kFrame, kMark, {.sequence = 2, .payload_bytes = 0});
  FakeBlocks blocks(network, 0);
  FakeChunkWork work;
  MpiLane lane({.rank = 0, .size = 2, .mark = kMark}, blocks, work, [](auto) {});
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(work.received_count(), 0U);
  lane.wake();
  EXPECT_TRUE(work.wait_received(1));
}

TEST(MpiLane, ServesFourRanks) {
  FakeMpiNetwork network(4);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int rank = 0; rank < 4; ++rank) nodes.push_back(std::make_unique<Node>(network, rank));
  std::size_t count = 0;
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      count = send_all_sizes(*nodes[static_cast<std::size_t>(a)], b,
                             10 * static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
  }
  for (auto& node : nodes) EXPECT_TRUE(node->work.wait_received(3 * count));
}

TEST(MpiLane, LosesNoWakeInAStorm) {
  FakeMpiNetwork network(2);
  Node a(network, 0);
  Node b(network, 1);
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kEach = 500;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) a.send(1, t, i, i % 64, Mode::kAbsorb);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(b.work.wait_received(std::size_t{kThreads} * kEach));
}

TEST(MpiLane, HoldsBackWhatIsBehindAParkedChunk) {
  FakeMpiNetwork network(3);
  Node a(network, 0);
  Node b(network, 1);
  Node c(network, 2);
  b.work.park_from(5);
  a.send(1, 5, 0, 300000, Mode::kAbsorb);
  ASSERT_TRUE(b.work.wait_parked(1));
  for (std::uint32_t i = 0; i < 20; ++i) a.send(1, 1, i, 300000, Mode::kInto);
  c.send(1, 2, 0, 300000, Mode::kInto);
  EXPECT_TRUE(b.work.wait_received(1)) << "other ranks go on";
  EXPECT_EQ(b.work.received_count(), 1U);
  b.work.park_from(6);
  b.lane().wake();
  EXPECT_TRUE(b.work.wait_received(22));
}

TEST(MpiLane, AsksAgainSoonWhenWorkIsRefused) {
  FakeMpiNetwork network(2);
  Node a(network, 0);
  Node b(network, 1);
  a.work.refuse_takes(true);
  a.send(1, 1, 0, 1000, Mode::kInto);
  std::this_thread::sleep_for(20ms);
  a.work.refuse_takes(false);  // and no wake
  EXPECT_TRUE(b.work.wait_received(1));
}

TEST(MpiLane, EndsCleanlyAfterAllThatWasSent) {
  FakeMpiNetwork network(2);
  Node a(network, 0);
  Node b(network, 1);
  const auto count = send_all_sizes(a, 1, 1);
  ASSERT_TRUE(a.work.wait_sent(count));
  a.lane().stop();
  EXPECT_TRUE(b.work.wait_received(count)) << "what was sent before still arrives";
  ASSERT_TRUE(b.work.wait_ended(1));
  EXPECT_TRUE(b.work.ended()[0].end.clean);
  EXPECT_EQ(b.work.ended()[0].end.error.code, ErrorCode::kPeerLost);
  EXPECT_TRUE(a.work.ended().empty()) << "flows that stop() closed are not reported";
  EXPECT_TRUE(a.kept.empty());
  b.send(0, 9, 0, 300000, Mode::kInto);
  std::this_thread::sleep_for(20ms);
  b.lane().stop();
  EXPECT_EQ(b.work.ended().size(), 1U) << "once";
}

TEST(MpiLane, CountsWhatAStoppedRankDoesNotReadAsSent) {
  FakeMpiNetwork network(2);
  Node a(network, 0);
  a.work.refuse_takes(true);
  a.send(1, 1, 0, 300000, Mode::kInto);
  post(network, MpiBlockKind::kEnd, kMark);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(a.work.ended().empty()) << "there is work for the peer";
  a.work.refuse_takes(false);
  ASSERT_TRUE(a.work.wait_ended(1));
  EXPECT_TRUE(a.work.ended()[0].end.clean);
  EXPECT_EQ(a.work.sent_count(), 1U);
}

TEST(MpiLane, GivesUpAFlowWhosePeerStopsInsideAChunk) {
  FakeMpiNetwork network(2);
  Node node(network, 0);
  post(network, MpiBlockKind::kFrame, kMark,
       {.sequence = 1, .payload_bytes = MpiBlock::kPayload + 13}, MpiBlock::kPayload);
  post(network, MpiBlockKind::kEnd, kMark);
  const FlowEnd end = the_end(node);
  EXPECT_FALSE(end.clean);
  EXPECT_NE(end.error.message.find("13 bytes before the end"), std::string::npos)
      << end.error.message;
}

TEST(MpiLane, NamesThePeerThatSendsNonsense) {
  const auto end_after = [](auto send) {
    FakeMpiNetwork network(2);
    Node node(network, 0, 0ms);
    send(network);
    return the_end(node).error.code;
  };
  EXPECT_EQ(end_after([](auto& network) { post(network, MpiBlockKind::kRest, kMark, {}, 8); }),
            ErrorCode::kProtocol);
  EXPECT_EQ(end_after([](auto& network) {
              post(network, MpiBlockKind::kFrame, kMark, {.payload_bytes = 100}, 8);
            }),
            ErrorCode::kProtocol);
  EXPECT_EQ(end_after([](auto& network) {
              const std::vector<std::byte> short_one(10);
              network.send(1, 0, short_one);
            }),
            ErrorCode::kProtocol);
  EXPECT_EQ(end_after([](auto& network) {
              std::vector<std::byte> bad(sizeof(MpiBlockHead));
              std::memcpy(bad.data(), &kMark, sizeof kMark);  // and no header
              network.send(1, 0, bad);
            }),
            ErrorCode::kProtocol);
}

TEST(MpiLane, TellsThePeerWhatTheWorkRejects) {
  FakeMpiNetwork network(2);
  Node a(network, 0);
  Node b(network, 1);
  b.work.reject(3);
  a.send(1, 2, 0, 10, Mode::kInto);
  a.send(1, 3, 0, 300000, Mode::kInto);
  ASSERT_TRUE(b.work.wait_ended(1));
  EXPECT_EQ(b.work.ended()[0].end.error.code, ErrorCode::kProtocol);
  EXPECT_EQ(b.work.received_count(), 1U);
  const FlowEnd end = the_end(a);
  EXPECT_FALSE(end.clean);
  EXPECT_NE(end.error.message.find("broke off"), std::string::npos) << end.error.message;
}

TEST(MpiLane, DropsWhatBelongsToAnotherWorld) {
  FakeMpiNetwork network(2);
  Node node(network, 0);
  post(network, MpiBlockKind::kFrame, kMark + 1, {.sequence = 1, .payload_bytes = 8}, 8);
  post(network, MpiBlockKind::kEnd, kMark + 1);
  post(network, MpiBlockKind::kFrame, kMark, {.sequence = 2, .payload_bytes = 0});
  EXPECT_TRUE(node.work.wait_received(1));
  EXPECT_TRUE(node.work.ended().empty());
}

// A peer that never takes what it is sent.
TEST(MpiLane, StopsInTimeAndHandsOverWhatMpiHolds) {
  FakeMpiNetwork network(2);
  Node node(network, 0, 50ms);
  node.send(1, 1, 0, 8 << 20, Mode::kInto);
  std::this_thread::sleep_for(20ms);
  node.lane().stop();
  EXPECT_EQ(node.work.sent_count(), 0U);
  EXPECT_FALSE(node.kept.empty());
}

}  // namespace
}  // namespace fasthorovod::transport
