#include "transport/hop_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <variant>
#include <vector>

#include "transport/meeting.h"
#include "transport/member.h"

namespace fasthorovod::transport {
namespace {

using ::testing::HasSubstr;

/// Rank 0 with links to some others, which this thread serves, too.
class HopProbeTest : public ::testing::Test {
 protected:
  /// A rank that answers probes; or one that does not.
  void add(int rank, bool answers) {
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    links_.add(rank, FileDescriptor(fds[0]), {});
    auto channel = std::make_unique<Channel>(context_, FileDescriptor(fds[1]), ChannelKeys{});
    channel->start({.on_message =
                        [this, answers, to = channel.get()](auto message) {
                          padding_.push_back(std::get<Probe>(*decode_rendezvous(message)).padding);
                          if (answers) (void)to->send(encode(Probe{}));
                        },
                    .on_end = [](const core::Error&) {}});
    others_.push_back(std::move(channel));
  }

  core::Result<core::HopCosts> probe(const std::vector<int>& ranks, core::TimePoint deadline) {
    const HopProbe probe(links_, ranks);
    run_until(context_, probe.over(), deadline);
    return probe.costs();
  }

  static core::TimePoint patience() { return core::Clock::now() + std::chrono::seconds(30); }

  boost::asio::io_context context_;
  ControlLinks links_{context_};
  std::vector<std::unique_ptr<Channel>> others_;
  std::vector<std::uint32_t> padding_;
};

TEST_F(HopProbeTest, AsksEachAtLeastTwice) {
  add(1, true);
  add(2, true);
  add(3, true);
  const auto costs = probe({1, 3}, patience());
  ASSERT_TRUE(costs) << costs.error().message;
  EXPECT_GT(costs->hop_seconds, 0);
  EXPECT_GT(costs->message_seconds, 0);
  EXPECT_GE(std::ranges::count(padding_, 0U), 2 * HopProbe::kLeastRounds);
  EXPECT_LE(std::ranges::count(padding_, 0U), 2 * HopProbe::kRounds);
  const auto large = std::ranges::count(padding_, kMostPadding);
  EXPECT_LE(large, HopProbe::kLargeRounds);
  EXPECT_EQ(costs->rate > 0, large > 0);
}

TEST_F(HopProbeTest, NamesARankThatLeft) {
  add(1, true);
  add(2, true);
  others_[1]->close();
  const auto costs = probe({1, 2}, patience());
  ASSERT_FALSE(costs);
  EXPECT_EQ(costs.error().culprit, 2);
  EXPECT_THAT(costs.error().message, HasSubstr("rank 2 left during the start"));
}

TEST_F(HopProbeTest, NamesARankThatDoesNotAnswer) {
  add(1, false);
  const auto costs = probe({1}, core::Clock::now());
  ASSERT_FALSE(costs);
  EXPECT_EQ(costs.error().code, core::ErrorCode::kTimedOut);
  EXPECT_EQ(costs.error().culprit, 1);
}

}  // namespace
}  // namespace fasthorovod::transport
