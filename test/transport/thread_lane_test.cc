// A lane in a thread whose loop another thread takes over.
#include "transport/thread_lane.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "test/transport/lane_fixture.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using Mode = FakeChunkWork::Mode;

constexpr std::size_t kSize = 1000;

void take(LanePlace& lane) {
  while (!lane.try_take()) std::this_thread::yield();
}

TEST(ThreadLane, IsDrivenByWhoTookItAndThenByItsThread) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 2);
  take(a.lane());
  EXPECT_FALSE(a.lane().try_take());
  for (std::uint32_t i = 0; i < 100; ++i) a.send(1, 1, i, kSize, Mode::kInto);
  while (a.work.sent_count() < 100) (void)a.lane().step(1ms);
  EXPECT_TRUE(b.work.wait_received(100));
  a.lane().give_back(false);
  a.send(1, 1, 100, kSize, Mode::kInto);
  EXPECT_TRUE(b.work.wait_received(101));
}

// What comes while nobody drives it: its thread goes back to its poll by itself.
TEST(ThreadLane, ServesWhatComesAfterItWasGivenBack) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 1);
  for (std::uint32_t i = 0; i < 20; ++i) {
    take(a.lane());
    a.lane().give_back(false);
    b.send(0, 1, i, kSize, Mode::kInto);
    ASSERT_TRUE(a.work.wait_received(i + 1));
  }
}

TEST(ThreadLane, IsTakenAgainAndAgainWhileOthersWakeIt) {
  LaneNode a;
  LaneNode b;
  join(a, 0, b, 1, SocketKind::kTcp, 2);
  constexpr std::uint32_t kCount = 500;
  std::thread waking([&a] {
    for (std::uint32_t i = 0; i < kCount; ++i) a.send(1, 1, i, kSize, Mode::kInto);
  });
  for (std::uint32_t i = 0; i < kCount; ++i) {
    if (!a.lane().try_take()) continue;
    (void)a.lane().step(0ms);
    a.lane().give_back(i % 2 == 0);
  }
  waking.join();
  EXPECT_TRUE(b.work.wait_received(kCount));
}

TEST(ThreadLane, StopsOnceItWasGivenBack) {
  LaneNode node;
  const auto peer = raw_flow(node, 1, SocketKind::kTcp);
  take(node.lane());
  std::thread stopping([&node] { node.stop(); });
  while (!node.lane().stopping()) (void)node.lane().step(1ms);
  node.lane().give_back(false);
  stopping.join();
  EXPECT_FALSE(node.lane().try_take());
}

}  // namespace
}  // namespace fasthorovod::transport
