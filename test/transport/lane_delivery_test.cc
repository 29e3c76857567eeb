// What goes in comes out: sizes, ways of receiving, numbers of flows and peers, small buffers, odd
// splits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "test/transport/lane_fixture.h"

namespace fasthorovod::transport {
namespace {

using Mode = FakeChunkWork::Mode;

constexpr std::array<std::size_t, 14> kSizes = {
    0, 1, 7, 8, 9, 48, 49, 4095, 4096, 65537, 131072, 131072 + 5, 1048576, 1048583};

class LaneDelivery : public testing::TestWithParam<std::tuple<SocketKind, int>> {
 protected:
  [[nodiscard]] static SocketKind kind() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int flows() { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Lane, LaneDelivery,
                         testing::Combine(testing::Values(SocketKind::kUnix, SocketKind::kTcp),
                                          testing::Values(1, 2, 4, 8)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param) == SocketKind::kUnix
                                                  ? "unix"
                                                  : "tcp") +
                                  std::to_string(std::get<1>(instance.param));
                         });

// Every size in both modes; returns the number of chunks.
std::size_t send_all_sizes(LaneNode& node, int peer, std::uint64_t sequence) {
  std::uint32_t transfer = 0;
  for (const auto size : kSizes) {
    node.send(peer, sequence, transfer++, size, Mode::kInto);
    node.send(peer, sequence, transfer++, size, Mode::kAbsorb);
  }
  return transfer;
}

TEST_P(LaneDelivery, BringsEverySizeBothWays) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, kind(), flows());
  const auto count = send_all_sizes(a, 1, 10);
  send_all_sizes(b, 0, 20);
  EXPECT_TRUE(b.work.wait_received(count));
  EXPECT_TRUE(a.work.wait_received(count));
  EXPECT_TRUE(a.work.wait_sent(count));
  const auto statistics = a.lane().statistics();
  EXPECT_EQ(statistics.chunks_sent, count);
  EXPECT_EQ(statistics.bytes_sent, b.lane().statistics().bytes_received);
}

TEST_P(LaneDelivery, BringsEverySizeThroughSmallBuffers) {
  LaneNode a({.notsent_lowat = 4096});
  LaneNode b({.notsent_lowat = 4096});
  join(a, 0, b, 1, kind(), flows(), 4096);
  const auto count = send_all_sizes(a, 1, 10);
  send_all_sizes(b, 0, 20);
  EXPECT_TRUE(b.work.wait_received(count));
  EXPECT_TRUE(a.work.wait_received(count));
}

TEST_P(LaneDelivery, BringsManySmallChunks) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, kind(), flows());
  constexpr std::uint32_t kCount = 3000;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    a.send(1, 1, i, i % 97, i % 2 == 0 ? Mode::kInto : Mode::kAbsorb);
  }
  EXPECT_TRUE(b.work.wait_received(kCount));
}

TEST_P(LaneDelivery, ServesThreeRanks) {
  std::array<LaneNode, 3> nodes;
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) {
      join(nodes[static_cast<std::size_t>(a)], a, nodes[static_cast<std::size_t>(b)], b, kind(),
           flows());
    }
  }
  std::size_t count = 0;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      if (a == b) continue;
      count = send_all_sizes(nodes[static_cast<std::size_t>(a)], b,
                             10 * static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
  }
  for (auto& node : nodes) EXPECT_TRUE(node.work.wait_received(2 * count));
}

TEST(Lane, BringsSixtyFourMebibytes) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 4);
  a.send(1, 1, 0, std::size_t{64} << 20, Mode::kInto);
  a.send(1, 1, 1, (std::size_t{64} << 20) + 3, Mode::kAbsorb);
  EXPECT_TRUE(b.work.wait_received(2));
}

// What a peer writes in pieces of any length is the same stream.
TEST(Lane, ReadsFramesHoweverTheyAreSplit) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    LaneNode node;
    const auto peer = raw_flow(node, 1, SocketKind::kUnix);
    std::vector<std::byte> stream;
    constexpr std::uint32_t kCount = 60;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const auto next =
          frame(seed, i, random() % 700, random() % 2 == 0 ? Mode::kInto : Mode::kAbsorb);
      stream.insert(stream.end(), next.begin(), next.end());
    }
    auto rest = std::span<const std::byte>(stream);
    while (!rest.empty()) {
      const auto size =
          std::min<std::size_t>(rest.size(), 1 + random() % (random() % 3 == 0 ? 400 : 9));
      ASSERT_TRUE(write_all(peer, rest.first(size)));
      rest = rest.subspan(size);
      if (random() % 8 == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(node.work.wait_received(kCount)) << "seed " << seed;
  }
}

TEST(Lane, BringsChunksThatWereJoined) {
  constexpr std::size_t kUnit = 48 << 10;
  LaneNode node;
  node.work.cut_runs_by(kUnit);
  const auto peer = raw_flow(node, 1, SocketKind::kTcp);
  std::uint32_t received = 0;
  for (const auto& [count, mode] : {std::pair{5U, Mode::kInto}, std::pair{3U, Mode::kAbsorb}}) {
    const std::uint64_t sequence = received + 1;
    const auto header = encode({.sequence = sequence,
                                .hop = static_cast<std::uint32_t>(mode),
                                .payload_bytes = count * kUnit});
    ASSERT_TRUE(write_all(peer, header));
    for (std::uint32_t transfer = 0; transfer < count; ++transfer) {
      ASSERT_TRUE(write_all(peer, pattern(sequence, transfer, kUnit)));
    }
    received += count;
    EXPECT_TRUE(node.work.wait_received(received));
  }
}

// Whatever pieces a peer reads in, the stream is whole frames one after the other.
TEST(Lane, WritesWholeFramesInOrder) {
  std::mt19937 random(7);
  LaneNode node;
  const auto peer = raw_flow(node, 1, SocketKind::kTcp, 4096);
  std::vector<std::byte> expected;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::size_t size = random() % 20000;
    const auto next = frame(3, i, size, Mode::kInto);
    expected.insert(expected.end(), next.begin(), next.end());
    node.send(1, 3, i, size, Mode::kInto);
  }
  std::vector<std::byte> got;
  while (got.size() < expected.size()) {
    const auto piece =
        read_up_to(peer, std::min<std::size_t>(1 + random() % 5000, expected.size() - got.size()));
    ASSERT_FALSE(piece.empty());
    got.insert(got.end(), piece.begin(), piece.end());
  }
  EXPECT_TRUE(got == expected);
}

}  // namespace
}  // namespace fasthorovod::transport
