#include "transport/control_plane.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "core/clock.h"
#include "core/control_message.h"
#include "test/transport/plane_group.h"
#include "transport/socket.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class AnyWorld : public ::testing::TestWithParam<std::tuple<Mode, int>> {
 protected:
  Mode mode() { return std::get<0>(GetParam()); }
  int size() { return std::get<1>(GetParam()); }
};

// The first byte that comes; sockets of flows do not block.
int receive_byte(const FileDescriptor& socket) {
  pollfd ready{socket.get(), POLLIN, 0};
  ::poll(&ready, 1, 30'000);
  unsigned char byte = 0;
  return ::recv(socket.get(), &byte, 1, 0) == 1 ? byte : -1;
}

TEST_P(AnyWorld, BringsAllRanksTogether) {
  World world(mode(), size());
  const auto ranks = world.start_all(7);
  for (int rank = 0; rank < size(); ++rank) {
    const core::World& seen = ranks[static_cast<std::size_t>(rank)]->plane().world();
    EXPECT_EQ(seen.rank, rank);
    EXPECT_EQ(seen.size, size());
    EXPECT_EQ(seen.epoch, 7U);
    EXPECT_EQ(seen.local_size, size());
    EXPECT_EQ(seen.local_rank, rank);
  }
}

TEST_P(AnyWorld, CarriesMessagesInOrderBothWays) {
  World world(mode(), size());
  const auto ranks = world.start_all();
  for (int rank = 1; rank < size(); ++rank) {
    Rank& worker = *ranks[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 100; ++i)
      worker.send(0, std::to_string(rank) + " says " + std::to_string(i));
    ranks[0]->send(rank, "to " + std::to_string(rank));
    EXPECT_EQ(worker.receive(), "to " + std::to_string(rank));
    for (int i = 0; i < 100; ++i) {
      int from = -1;
      EXPECT_EQ(ranks[0]->receive(&from), std::to_string(rank) + " says " + std::to_string(i));
      EXPECT_EQ(from, rank);
    }
  }
}

TEST_P(AnyWorld, OpensFlowsBetweenEachPair) {
  World world(mode(), size());
  const auto ranks = world.start_all();
  constexpr int kFlows = 3;
  for (int a = 0; a < size(); ++a) {
    for (int b = 0; b < size(); ++b) {
      if (a == b) continue;
      ranks[static_cast<std::size_t>(a)]->on_owner([&](ControlPlane& plane) {
        plane.open_flows(b, kFlows);
        plane.open_flows(b, kFlows);
      });
    }
  }
  for (int a = 0; a < size(); ++a) {
    for (int b = a + 1; b < size(); ++b) {
      const auto here = ranks[static_cast<std::size_t>(a)]->take_flows(b, kFlows);
      const auto there = ranks[static_cast<std::size_t>(b)]->take_flows(a, kFlows);
      ASSERT_EQ(here.size(), 3U);
      ASSERT_EQ(there.size(), 3U);
      for (std::size_t i = 0; i < here.size(); ++i) {
        const char byte = static_cast<char>(1 + i);
        ASSERT_EQ(::send(here[i].get(), &byte, 1, 0), 1);
        EXPECT_EQ(receive_byte(there[i]), byte) << "a flow has one index on both sides";
        ASSERT_EQ(::send(there[i].get(), &byte, 1, 0), 1);
        EXPECT_EQ(receive_byte(here[i]), byte);
      }
    }
  }
}

TEST(ControlPlane, CarriesLargeMessages) {
  World world(Mode::kByHand, 2);
  const auto ranks = world.start_all();
  std::string large(1 << 20, ' ');
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 2654435761U >> 13);
  for (int i = 0; i < 3; ++i) {
    ranks[0]->send(1, large);
    ranks[1]->send(0, large);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ranks[1]->receive() == large);
    EXPECT_TRUE(ranks[0]->receive() == large);
  }
}

TEST(ControlPlane, RefusesMessagesThatHaveNoConnection) {
  World world(Mode::kByHand, 3);
  const auto ranks = world.start_all();
  ranks[0]->on_owner([](ControlPlane& plane) {
    EXPECT_EQ(plane.send(0, {}).error().code, core::ErrorCode::kInternal);
    EXPECT_FALSE(plane.send(3, {}));
    EXPECT_FALSE(plane.send(1, std::vector<std::byte>(core::kMaxControlBytes + 1)));
  });
  ranks[1]->on_owner([](ControlPlane& plane) {
    EXPECT_FALSE(plane.send(1, {}));
    EXPECT_FALSE(plane.send(2, {}));
  });
}

TEST(ControlPlane, TellsOnceThatAPeerIsLost) {
  World world(Mode::kStore, 3);
  auto ranks = world.start_all();
  ranks.pop_back();
  ASSERT_TRUE(ranks[0]->wait_lost(2));
  const core::Error error = ranks[0]->loss(2);
  EXPECT_EQ(error.code, core::ErrorCode::kPeerLost);
  EXPECT_EQ(error.culprit, 2);
  EXPECT_THAT(error.message, HasSubstr("rank 2 (host"));
  // The others go on; messages to the lost one vanish.
  ranks[0]->send(2, "anybody there?");
  ranks[1]->send(0, "still here");
  EXPECT_EQ(ranks[0]->receive(), "still here");
  EXPECT_FALSE(ranks[1]->has_lost(2));
  ranks.erase(ranks.begin());
  EXPECT_TRUE(ranks[0]->wait_lost(0));
}

TEST(ControlPlane, SaysNothingAboutAnExpectedEnd) {
  World world(Mode::kByHand, 3);
  auto ranks = world.start_all();
  ranks[0]->on_owner([](ControlPlane& plane) { plane.expect_close(1); });
  ranks.erase(ranks.begin() + 1);
  ranks.pop_back();
  ASSERT_TRUE(ranks[0]->wait_lost(2));
  // Rank 1 went first, and its end was served first or is served within this call.
  ranks[0]->on_owner([](ControlPlane&) {});
  EXPECT_FALSE(ranks[0]->has_lost(1));
}

TEST(ControlPlane, FlushesBeforeItCloses) {
  World world(Mode::kByHand, 2);
  const auto ranks = world.start_all();
  const std::string large(4 << 20, 'z');
  ranks[1]->on_owner([&](ControlPlane& plane) {
    const auto bytes = std::as_bytes(std::span(large));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(plane.send(0, {bytes.begin(), bytes.end()}));
    plane.flush(30s);
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ranks[0]->receive() == large);
  EXPECT_TRUE(ranks[0]->wait_lost(1));
}

TEST(ControlPlane, FlushEndsAtItsLimit) {
  World world(Mode::kByHand, 2);
  auto start_0 = world.start(world.config(0));
  auto start_1 = world.start(world.config(1));
  auto silent = start_0.get();  // never runs, so never reads
  ASSERT_TRUE(silent);
  Rank talker(std::move(*start_1.get()));
  const auto begin = core::Clock::now();
  talker.on_owner([](ControlPlane& plane) {
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(plane.send(0, std::vector<std::byte>(8 << 20)));
    plane.flush(100ms);
  });
  EXPECT_LT(core::Clock::now() - begin, 10s);
}

TEST(ControlPlane, CallsLaterInOrder) {
  LogLines log;
  auto plane = ControlPlane::connect(core::Config{}, 0, log.log());
  ASSERT_TRUE(plane);
  Rank rank(std::move(*plane));
  std::vector<int> order;
  std::promise<void> done;
  rank.on_owner([&](ControlPlane& own) {
    own.call_after(20ms, [&] {
      order.push_back(2);
      done.set_value();
    });
    own.call_after(1ms, [&] { order.push_back(1); });
  });
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(ControlPlane, MayBeStoppedBeforeItRuns) {
  LogLines log;
  auto plane = ControlPlane::connect(core::Config{}, 0, log.log());
  ASSERT_TRUE(plane);
  (*plane)->stop();
  (*plane)->run({});
}

TEST(ControlPlane, PacesFlowsToOtherHostsOnBothEnds) {
  World world(Mode::kByHand, 3);
  const auto ranks = world.start_all(0, [](core::Config& config) {
    config.host_identity = config.rank == 2 ? "far" : "near";
    config.flow_rate = 12'500'000;
  });
  const auto rate_of = [](const FileDescriptor& socket) {
    std::uint64_t rate = 0;
    socklen_t length = sizeof(rate);
    EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &length), 0);
    return rate;
  };
  const auto open = [&](std::size_t a, std::size_t b) {
    ranks[a]->on_owner([&](ControlPlane& plane) { plane.open_flows(static_cast<int>(b), 1); });
    ranks[b]->on_owner([&](ControlPlane& plane) { plane.open_flows(static_cast<int>(a), 1); });
    return std::pair(ranks[a]->take_flows(static_cast<int>(b), 1),
                     ranks[b]->take_flows(static_cast<int>(a), 1));
  };
  const auto far = open(0, 2);
  ASSERT_EQ(far.first.size() + far.second.size(), 2U);
  EXPECT_EQ(rate_of(far.first[0]), 12'500'000U);
  EXPECT_EQ(rate_of(far.second[0]), 12'500'000U);
  const auto near = open(0, 1);
  ASSERT_EQ(near.first.size() + near.second.size(), 2U);
  EXPECT_GT(rate_of(near.first[0]), 12'500'000U);
  EXPECT_GT(rate_of(near.second[0]), 12'500'000U);
}

// Every Linux has reno, and lets everybody use it.
TEST(ControlPlane, UsesTheChosenCongestionControlOnBothEnds) {
  World world(Mode::kByHand, 2);
  const auto ranks =
      world.start_all(0, [](core::Config& config) { config.tcp_congestion = "reno"; });
  const auto control_of = [](const FileDescriptor& socket) {
    std::array<char, 16> name{};
    socklen_t length = name.size();
    EXPECT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &length), 0);
    return std::string(name.data());
  };
  ranks[0]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 1); });
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(0, 1); });
  const auto left = ranks[0]->take_flows(1, 1);
  const auto right = ranks[1]->take_flows(0, 1);
  ASSERT_EQ(left.size() + right.size(), 2U);
  EXPECT_EQ(control_of(left[0]), "reno");
  EXPECT_EQ(control_of(right[0]), "reno");
}

TEST(ControlPlane, SaysWhichCongestionControlsThereAre) {
  LogLines log;
  core::Config config;
  config.tcp_congestion = "no-such-thing";
  const auto plane = ControlPlane::connect(config, 0, log.log());
  ASSERT_FALSE(plane);
  EXPECT_EQ(plane.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_THAT(plane.error().message,
              ::testing::AllOf(HasSubstr("FASTHOROVOD_TCP_CONGESTION=\"no-such-thing\""),
                               HasSubstr("reno")));
}

TEST(ControlPlane, KnowsHowManyFlowsEachPairShares) {
  World world(Mode::kByHand, 3);
  const auto ranks = world.start_all(0, [](core::Config& config) {
    config.lanes = 1 + config.rank;      // 1, 2, 3
    config.flows = 5 - 2 * config.rank;  // 5, 3, 1
    config.arena_mb = 64 - config.rank;
  });
  const std::vector<std::vector<int>> expected{{0, 6, 5}, {6, 0, 6}, {5, 6, 0}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const ControlPlane& plane = ranks[rank]->plane();
    EXPECT_EQ(plane.lane_plan().lanes, 1 + static_cast<int>(rank));
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(plane.flows_with(peer), expected[rank][static_cast<std::size_t>(peer)]);
    }
    EXPECT_EQ(plane.usual_flows(), 6);
    EXPECT_EQ(plane.smallest_arena_mb(), 62);
  }
}

TEST(ControlPlane, SharesMoreFlowsWhereBothMayFindTheNumber) {
  World world(Mode::kByHand, 3);
  const auto ranks = world.start_all(0, [](core::Config& config) {
    if (config.rank == 1) config.flows = 2;
  });
  const std::vector<std::vector<int>> expected{{0, 2, 8}, {2, 0, 2}, {8, 2, 0}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const ControlPlane& plane = ranks[rank]->plane();
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(plane.flows_with(peer), expected[rank][static_cast<std::size_t>(peer)]);
    }
    EXPECT_EQ(plane.usual_flows(), 4);
    EXPECT_EQ(plane.lane_plan().measures_flows, rank != 1);
    EXPECT_EQ(plane.lane_reasons().wish.flows.has_value(), rank == 1);
    EXPECT_TRUE(plane.lane_reasons().around.ranks_on_host == 3);
  }
}

TEST(ControlPlane, KeepsFlowsThatComeBeforeTheyAreAskedFor) {
  World world(Mode::kByHand, 2);
  const auto ranks = world.start_all();
  ranks[0]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 2); });
  ASSERT_EQ(ranks[0]->take_flows(1, 2).size(), 2U);
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(0, 2); });
  EXPECT_EQ(ranks[1]->take_flows(0, 2).size(), 2U);
}

TEST(ControlPlane, NamesAPeerWhoseFlowsNeverCome) {
  World world(Mode::kByHand, 3);
  auto ranks = world.start_all(0, [](core::Config& config) { config.start_timeout = 1s; });
  ranks[2]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 1); });  // rank 1 does not dial
  core::Error error = ranks[2]->wait_flow_failure(1);
  EXPECT_EQ(error.culprit, 1);
  EXPECT_THAT(error.message, HasSubstr("0 of 1 flows to rank 1"));
  ranks.pop_back();
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(2, 1); });  // rank 2 is gone
  error = ranks[1]->wait_flow_failure(2);
  EXPECT_EQ(error.culprit, 2);
  EXPECT_THAT(error.message, HasSubstr("refused"));
}

TEST(ControlPlane, SocketsOfFlowsAreNonBlockingAndClosedOnExec) {
  World world(Mode::kByHand, 2);
  const auto ranks = world.start_all();
  ranks[0]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 1); });
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(0, 1); });
  for (int rank = 0; rank < 2; ++rank) {
    const auto flows = ranks[static_cast<std::size_t>(rank)]->take_flows(1 - rank, 1);
    ASSERT_EQ(flows.size(), 1U);
    const int fd = flows[0].get();
    EXPECT_TRUE(::fcntl(fd, F_GETFL) & O_NONBLOCK);
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    int value = 0;
    socklen_t length = sizeof(value);
    ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length);
    EXPECT_EQ(value, 1);
    ::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &length);
    EXPECT_EQ(value, 1);
    // What was sent last may take a moment to be acknowledged.
    const core::TimePoint limit = core::Clock::now() + std::chrono::seconds(10);
    while (unanswered_for(fd).count() != 0 && core::Clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(unanswered_for(fd).count(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, AnyWorld,
                         ::testing::Combine(::testing::Values(Mode::kStore, Mode::kByHand,
                                                              Mode::kGivenStore),
                                            ::testing::Range(2, 6)),
                         [](const auto& param) {
                           return to_string(std::get<0>(param.param)) +
                                  std::to_string(std::get<1>(param.param));
                         });

TEST(ControlPlane, OfAWorldOfOneOpensNoSocket) {
  LogLines log;
  auto plane = ControlPlane::connect(core::Config{}, 3, log.log());
  ASSERT_TRUE(plane) << plane.error().message;
  EXPECT_EQ((*plane)->world().size, 1);
  EXPECT_EQ((*plane)->world().epoch, 3U);
  EXPECT_EQ((*plane)->usual_flows(), 4);
  EXPECT_EQ((*plane)->smallest_arena_mb(), 1024);
  Rank rank(std::move(*plane));
  rank.on_owner([](ControlPlane& own) {
    EXPECT_EQ(own.send(0, {}).error().code, core::ErrorCode::kInternal);
    own.open_flows(0, 1);
    own.flush(1s);
  });
}

}  // namespace
}  // namespace fasthorovod::transport
