// What only a lane inside this process does: step by hand, and take chunks of any size.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

#include "test/transport/lane_fixture.h"
#include "transport/lane.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using Mode = FakeChunkWork::Mode;

// Whether the other side closes, within a generous time.
bool is_at_end(const FileDescriptor& socket) {
  pollfd readable{.fd = socket.get(), .events = POLLIN, .revents = 0};
  char byte = 0;
  return ::poll(&readable, 1, 30'000) == 1 && ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(Lane, DoesNotBelieveALengthBeforeTheBytesCome) {
  LaneNode node;
  const auto peer = raw_flow(node, 7, SocketKind::kTcp);
  const auto header = encode({.sequence = 1,
                              .hop = static_cast<std::uint32_t>(Mode::kCount),
                              .payload_bytes = std::uint64_t{1} << 33});
  ASSERT_TRUE(write_all(peer, header));
  ASSERT_TRUE(write_all(peer, std::vector<std::byte>(300000)));
  ::shutdown(peer.get(), SHUT_WR);
  ASSERT_TRUE(node.work.wait_ended(1));
  const auto end = node.work.ended()[0].end;
  EXPECT_FALSE(end.clean);
  EXPECT_NE(end.error.message.find("8589634592 bytes before"), std::string::npos)
      << end.error.message;
}

TEST(Lane, StopsBeforeItRan) {
  FakeChunkWork work;
  auto lane = Lane::create({}, work);
  ASSERT_TRUE(lane);
  (*lane)->stop();
  (*lane)->run();
}

TEST(Lane, ClosesFlowsThatComeTooLate) {
  FakeChunkWork work;
  auto lane = std::move(Lane::create({}, work)).value();
  auto before = connected_pair(SocketKind::kTcp);
  lane->add_flow(1, std::move(before.first));
  lane->stop();
  auto after = connected_pair(SocketKind::kTcp);
  lane->add_flow(1, std::move(after.first));
  EXPECT_TRUE(is_at_end(after.second));
  lane->run();
  EXPECT_TRUE(is_at_end(before.second));
  EXPECT_TRUE(work.ended().empty());
}

TEST(Lane, StepsWithoutAThread) {
  FakeChunkWork work_a;
  FakeChunkWork work_b;
  auto a = std::move(Lane::create({}, work_a)).value();
  auto b = std::move(Lane::create({}, work_b)).value();
  auto pair = connected_pair(SocketKind::kTcp);
  a->add_flow(1, std::move(pair.first));
  b->add_flow(0, std::move(pair.second));
  while (a->step(0ms) || b->step(0ms)) {
  }
  EXPECT_FALSE(a->step(1ms));
  work_a.queue(1, 1, 0, 100000, Mode::kAbsorb);  // the owner itself need not call wake
  EXPECT_TRUE(a->step(0ms));
  for (int i = 0; i < 1000 && work_b.received_count() == 0; ++i) {
    a->step(0ms);
    b->step(1ms);
  }
  EXPECT_EQ(work_b.received_count(), 1U);
  EXPECT_FALSE(a->step(0ms));
}

// As the test of this name of the other lanes, at the moment at which no wake has come yet.
TEST(Lane, ReadsWhatCameBeforeSendingFailedThoughNobodyWokeIt) {
  FakeChunkWork work;
  auto lane = std::move(Lane::create({}, work)).value();
  auto pair = connected_pair(SocketKind::kUnix);
  lane->add_flow(7, std::move(pair.first));
  work.park_from(1);
  ASSERT_TRUE(write_all(pair.second, frame(1, 0, 100, Mode::kInto)));
  ASSERT_TRUE(write_all(pair.second, frame(1, 1, 100, Mode::kInto)));
  while (lane->step(0ms)) {
  }
  pair.second = FileDescriptor();
  work.park_from(2);
  work.queue(7, 1, 0, 1000, Mode::kInto);
  while (lane->step(0ms)) {
  }
  EXPECT_EQ(work.received_count(), 2U);
  ASSERT_EQ(work.ended().size(), 1U);
  EXPECT_FALSE(work.ended()[0].end.clean) << "a chunk of ours was lost";
}

}  // namespace
}  // namespace fasthorovod::transport
