// How a lane shares work among flows, parks, sleeps, wakes and stops. How flows end is in
// lane_end_test.cc.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "test/transport/lane_fixture.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using Mode = FakeChunkWork::Mode;

// Turns of the loop while the lane is left alone for a while.
std::uint64_t turns_in(const LanePlace& lane, std::chrono::milliseconds time) {
  const auto before = lane.statistics().turns;
  std::this_thread::sleep_for(time);
  return lane.statistics().turns - before;
}

TEST(Lane, GivesChunksToTheFlowThatDrains) {
  LaneNode node({.notsent_lowat = 32 << 10});
  const auto stuck = raw_flow(node, 1, SocketKind::kTcp, 16 << 10);
  const auto draining = raw_flow(node, 1, SocketKind::kTcp);
  constexpr std::uint32_t kCount = 200;
  constexpr std::size_t kSize = 64 << 10;
  for (std::uint32_t i = 0; i < kCount; ++i) node.work.queue(1, 1, i, kSize, Mode::kInto);
  node.lane().wake();
  // The stuck flow may hold what its kernel buffers took, and one chunk more.
  constexpr std::uint32_t kHeld = 8;
  const auto got = read_up_to(draining, (kCount - kHeld) * (kSize + kFrameHeaderBytes));
  EXPECT_EQ(got.size(), (kCount - kHeld) * (kSize + kFrameHeaderBytes));
}

TEST(Lane, HoldsAtMostOneUnsentChunkOnAStuckFlow) {
  LaneNode node({.notsent_lowat = 32 << 10});
  const auto stuck = raw_flow(node, 1, SocketKind::kTcp, 16 << 10);
  for (std::uint32_t i = 0; i < 100; ++i) node.work.queue(1, 1, i, 256 << 10, Mode::kInto);
  node.lane().wake();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(node.work.sent_count(), 0U);
  const auto bytes = node.lane().statistics().bytes_sent;
  EXPECT_LT(bytes, (256U << 10) + kFrameHeaderBytes) << "one chunk in hand, none after it";
  EXPECT_LE(turns_in(node.lane(), 200ms), 5U) << "waiting for room, the lane sleeps";
}

TEST(Lane, ParksOneFlowWhileOthersGoOn) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 2);
  b.work.park_from(5);
  a.send(1, 5, 0, 1000, Mode::kAbsorb);
  ASSERT_TRUE(b.work.wait_parked(1));
  // Chunks behind the parked one on its own flow wait with it, so send until the other flow has
  // carried one.
  for (std::uint32_t i = 0; i < 20; ++i) a.send(1, 1, i, 100, Mode::kInto);
  EXPECT_TRUE(b.work.wait_received(1));
  b.work.park_from(6);
  b.lane().wake();
  EXPECT_TRUE(b.work.wait_received(21));
}

// All of it is read before the first frame parks.
TEST(Lane, GoesOnBehindAParkedChunkWithWhatItHasRead) {
  for (const Mode mode : {Mode::kInto, Mode::kAbsorb}) {
    LaneNode node;
    const auto peer = raw_flow(node, 1, SocketKind::kTcp);
    node.work.park_from(2);
    std::vector<std::byte> bytes;
    for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
      const auto next = frame(sequence, 0, 10 * sequence + 1, mode);
      bytes.insert(bytes.end(), next.begin(), next.end());
    }
    ASSERT_TRUE(write_all(peer, bytes));
    ASSERT_TRUE(node.work.wait_parked(1));
    EXPECT_EQ(node.work.received_count(), 1U);
    node.work.park_from(4);
    node.lane().wake();
    ASSERT_TRUE(node.work.wait_parked(2));
    EXPECT_EQ(node.work.received_count(), 3U);
    node.work.park_from(5);
    node.lane().wake();
    EXPECT_TRUE(node.work.wait_received(4));
  }
}

TEST(Lane, CarriesFramesOfAllSizesInTheirOrder) {
  LaneNode node;
  const auto peer = raw_flow(node, 1, SocketKind::kTcp);
  std::vector<std::byte> expected;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t size = i % 7 == 0 ? 0 : (i % 10) * 1000 + i % 3;
    node.work.queue(1, 1, i, size, Mode::kInto);
    const auto next = frame(1, i, size, Mode::kInto);
    expected.insert(expected.end(), next.begin(), next.end());
  }
  node.lane().wake();
  EXPECT_EQ(read_up_to(peer, expected.size()), expected);
  EXPECT_TRUE(node.work.wait_sent(200));
}

TEST(Lane, SleepsWhileAFlowIsParked) {
  LaneNode node;
  const auto peer = raw_flow(node, 1, SocketKind::kTcp);
  node.work.park_from(1);
  ASSERT_TRUE(write_all(peer, frame(1, 0, 5000, Mode::kInto)));
  ASSERT_TRUE(node.work.wait_parked(1));
  std::this_thread::sleep_for(50ms);
  EXPECT_LE(turns_in(node.lane(), 200ms), 5U);
  node.work.park_from(2);
  node.lane().wake();
  EXPECT_TRUE(node.work.wait_received(1));
}

TEST(Lane, SleepsWhileAParkedPeerIsGone) {
  LaneNode node;
  auto peer = raw_flow(node, 1, SocketKind::kTcp);
  node.work.park_from(1);
  ASSERT_TRUE(write_all(peer, frame(1, 0, 5000, Mode::kInto)));
  ASSERT_TRUE(node.work.wait_parked(1));
  peer = FileDescriptor();
  std::this_thread::sleep_for(50ms);
  EXPECT_LE(turns_in(node.lane(), 200ms), 5U);
  EXPECT_TRUE(node.work.ended().empty()) << "what the peer had sent comes first";
  node.work.park_from(2);
  node.lane().wake();
  EXPECT_TRUE(node.work.wait_received(1));
  ASSERT_TRUE(node.work.wait_ended(1));
  EXPECT_TRUE(node.work.ended()[0].end.clean);
}

TEST(Lane, StartsAParkedChunkAfterAnotherOneCame) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 4);
  b.work.park_from(0);
  constexpr std::uint32_t kCount = 64;
  for (std::uint32_t i = 0; i < kCount; ++i) a.send(1, i, 0, 500, Mode::kAbsorb);
  for (std::uint64_t open = 1; open <= kCount; ++open) {
    b.work.park_from(open);
    b.lane().wake();
    std::this_thread::yield();
  }
  EXPECT_TRUE(b.work.wait_received(kCount));
}

TEST(Lane, UsesNoProcessorWhenIdle) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 4);
  a.send(1, 1, 0, 1000, Mode::kInto);
  ASSERT_TRUE(b.work.wait_received(1));
  std::this_thread::sleep_for(50ms);
  EXPECT_LE(turns_in(a.lane(), 200ms), 2U);
  EXPECT_LE(turns_in(b.lane(), 100ms), 2U);
}

TEST(Lane, AsksAgainSoonWhenWorkIsRefused) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 2);
  a.work.refuse_takes(true);
  a.send(1, 1, 0, 1000, Mode::kInto);
  std::this_thread::sleep_for(20ms);
  const core::TimePoint start = core::Clock::now();
  const std::uint64_t turns = turns_in(a.lane(), 200ms);
  const auto elapsed = std::chrono::ceil<std::chrono::milliseconds>(core::Clock::now() - start);
  EXPECT_LE(turns, static_cast<std::uint64_t>(elapsed.count()) * 3 / 2) << "once a millisecond";
  a.work.refuse_takes(false);  // and no wake
  EXPECT_TRUE(b.work.wait_received(1));
}

TEST(Lane, LosesNoWakeInAStorm) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 2);
  constexpr std::size_t kThreads = 4;
  constexpr std::uint32_t kEach = 1000;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        a.send(1, t, i, i % 64, Mode::kAbsorb);
        if (i % 50 == 0)
          std::this_thread::sleep_for(100us);  // let the lane fall asleep now and then
        b.lane().wake();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(b.work.wait_received(kThreads * kEach));
}

// One chunk at a time, each posted only after the one before came: every one of them has to wake a
// sleeper.
TEST(Lane, WakesForEachOfManySingleChunks) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kUnix, 1);
  for (std::uint32_t i = 0; i < 500; ++i) {
    a.send(1, 1, i, 8, Mode::kInto);
    ASSERT_TRUE(b.work.wait_received(i + 1));
  }
}

TEST(Lane, TakesFlowsWhileRunning) {
  LaneNode a;
  LaneNode b;
  constexpr std::uint32_t kCount = 400;
  for (std::uint32_t i = 0; i < kCount; ++i) a.work.queue(1, 1, i, 3000, Mode::kAbsorb);
  a.lane().wake();  // work for a peer without a flow is no reason to spin
  std::this_thread::sleep_for(20ms);
  EXPECT_LE(turns_in(a.lane(), 100ms), 5U);
  for (int i = 0; i < 8; ++i) join(a, 0, b, 1, SocketKind::kTcp, 1);
  EXPECT_TRUE(b.work.wait_received(kCount));
}

TEST(Lane, StopsDuringATransfer) {
  LaneNode a({.close_limit = 100ms});
  LaneNode b({.close_limit = 100ms});
  join(a, 0, b, 1, SocketKind::kTcp, 4);
  for (std::uint32_t i = 0; i < 200; ++i) a.work.queue(1, 1, i, 1 << 20, Mode::kAbsorb);
  a.lane().wake();
  ASSERT_TRUE(b.work.wait_received(3));
  const auto before = std::chrono::steady_clock::now();
  a.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  ASSERT_TRUE(b.work.wait_ended(4));
  for (const auto& [peer, end] : b.work.ended()) EXPECT_EQ(peer, 0);
  EXPECT_TRUE(a.work.ended().empty()) << "flows that stop() closed are not reported";
}

TEST(Lane, DeliversWhatWasWrittenBeforeStopping) {
  for (const auto kind : {SocketKind::kUnix, SocketKind::kTcp}) {
    LaneNode node;
    const auto peer = raw_flow(node, 1, kind);
    node.work.park_from(9);
    // Bytes that the lane never reads must not cost those that it wrote.
    ASSERT_TRUE(write_all(peer, frame(9, 0, 50000, Mode::kInto)));
    ASSERT_TRUE(node.work.wait_parked(1));
    node.send(1, 1, 0, 10000, Mode::kInto);
    node.send(1, 1, 1, 20000, Mode::kInto);
    ASSERT_TRUE(node.work.wait_sent(2));
    node.stop();
    const auto got = read_up_to(peer, 100000);
    EXPECT_EQ(got.size(), 30000 + 2 * kFrameHeaderBytes);
  }
}

TEST(Lane, StopsAlthoughAPeerNeverReads) {
  LaneNode node({.close_limit = 50ms});
  const auto peer = raw_flow(node, 1, SocketKind::kTcp, 8 << 10);
  node.send(1, 1, 0, 8 << 20, Mode::kInto);
  std::this_thread::sleep_for(20ms);
  const auto before = std::chrono::steady_clock::now();
  node.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 3s);
}

}  // namespace
}  // namespace fasthorovod::transport
