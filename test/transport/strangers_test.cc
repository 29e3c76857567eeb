// Strangers at the listener of rank 0, during the start and afterwards: refused, counted, and no
// harm to the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "test/transport/plane_group.h"
#include "transport/control_plane.h"
#include "transport/handshake.h"
#include "transport/listener.h"
#include "transport/socket.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;
using ::testing::HasSubstr;

enum class Moment { kDuringStart, kAfterwards };

class Strangers : public ::testing::TestWithParam<Moment> {
 protected:
  // Two ranks of three are there, or all.
  void SetUp() override {
    early_.push_back(world_.start(world_.config(0)));
    early_.push_back(world_.start(world_.config(1)));
    if (GetParam() == Moment::kAfterwards) complete();
  }
  void TearDown() override {
    if (ranks_.empty()) complete();
    // The world works, whoever knocked.
    ASSERT_EQ(ranks_.size(), 3U);
    ranks_[1]->send(0, "hello");
    EXPECT_EQ(ranks_[0]->receive(), "hello");
    ranks_[0]->send(2, "hello yourself");
    EXPECT_EQ(ranks_[2]->receive(), "hello yourself");
    EXPECT_TRUE(eventually([&] { return expected_(ranks_[0]->plane().refused()); }))
        << ranks_[0]->plane().refused().total();
  }
  void complete() {
    early_.push_back(world_.start(world_.config(2)));
    const auto begin = core::Clock::now();
    for (auto& start : early_) {
      auto plane = start.get();
      ASSERT_TRUE(plane) << plane.error().message;
      ranks_.push_back(std::make_unique<Rank>(std::move(*plane)));
    }
    took_ = core::Clock::now() - begin;
  }

  FileDescriptor knock() {
    const auto where = parse_host_port(world_.meeting_point());
    const Endpoint endpoint{*parse_ip(where->host), where->port};
    FileDescriptor connected;
    eventually([&] {
      auto socket = begin_connect(endpoint);
      if (!socket) return false;
      pollfd ready{socket->get(), POLLOUT, 0};
      ::poll(&ready, 1, 1'000);
      if (!finish_connect(socket->get(), endpoint)) return false;
      connected = std::move(*socket);
      return true;
    });
    return connected;
  }
  static void say(const FileDescriptor& socket, std::string_view text) {
    (void)::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Whether the other side ended the connection.
  static bool is_ended(const FileDescriptor& socket) {
    return eventually([&] {
      std::array<char, 256> buffer{};
      const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
  }

  World world_{Mode::kByHand, 3};
  std::vector<std::future<World::Outcome>> early_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::function<bool(const Refusals&)> expected_;
  core::Duration took_{};
  std::vector<FileDescriptor> guests_;  // stay until the end
};

INSTANTIATE_TEST_SUITE_P(Moments, Strangers,
                         ::testing::Values(Moment::kDuringStart, Moment::kAfterwards),
                         [](const auto& param) {
                           return std::string(param.param == Moment::kDuringStart ? "DuringStart"
                                                                                  : "Afterwards");
                         });

TEST_P(Strangers, ThatSpeakSomethingElse) {
  for (const char* words : {"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n",
                            "\x16\x03\x01\x02 is how a TLS hello begins"}) {
    const FileDescriptor socket = knock();
    say(socket, words);
    EXPECT_TRUE(is_ended(socket));
  }
  expected_ = [](const Refusals& refusals) { return refusals.garbage == 2; };
}

TEST_P(Strangers, ThatSendFarTooMuch) {
  const FileDescriptor socket = knock();
  say(socket, std::string(1 << 20, '\xFF'));
  EXPECT_TRUE(is_ended(socket));
  expected_ = [](const Refusals& refusals) { return refusals.garbage == 1; };
}

TEST_P(Strangers, ThatScanThePort) {
  for (int i = 0; i < 500; ++i) knock().reset();
  expected_ = [](const Refusals& refusals) { return refusals.garbage == 500; };
}

TEST_P(Strangers, ThatSendOneByteAndLeave) {
  say(knock(), "x");
  expected_ = [](const Refusals& refusals) { return refusals.garbage == 1; };
}

TEST_P(Strangers, ThatSpeakAnotherVersion) {
  const FileDescriptor socket = knock();
  std::string words = "FasthrvD";
  words += '\x09';
  words += std::string(150, '\0');
  say(socket, words);
  EXPECT_TRUE(is_ended(socket));
  EXPECT_TRUE(eventually([&] {
    return world_.log().contain("version 9, this rank version " + std::to_string(kProtocolVersion));
  }));
  expected_ = [](const Refusals& refusals) { return refusals.version == 1; };
}

TEST_P(Strangers, ThatClaimARankWithoutTheSecret) {
  for (int i = 0; i < 100; ++i) {
    const FileDescriptor socket = knock();
    std::string words = "FasthrvD";
    words += static_cast<char>(kProtocolVersion);
    words += std::string(kClaimBytes - words.size(), '\0');
    say(socket, words);
    EXPECT_TRUE(is_ended(socket));
  }
  expected_ = [](const Refusals& refusals) { return refusals.secret == 100; };
}

TEST_P(Strangers, ThatSaySlowlyOrNothing) {
  // More than there are places: the next ranks must get in all the same.
  std::vector<FileDescriptor>& idle = guests_;
  for (int i = 0; i < 150; ++i) {
    idle.push_back(knock());
    if (i % 3 == 0) say(idle.back(), "F");
  }
  if (GetParam() == Moment::kDuringStart) {
    complete();
    EXPECT_LT(took_, 10s);
  }
  expected_ = [](const Refusals& refusals) { return refusals.slow == 150; };
}

TEST_P(Strangers, ThatReplayAClaim) {
  // A recorded proof belongs to the challenge of its connection.
  const Secret secret = *Secret::from_file(world_.secret_file().path());
  const FileDescriptor first = knock();
  std::array<std::byte, kChallengeBytes> challenge{};
  std::size_t got = 0;
  ASSERT_TRUE(eventually([&] {
    const ssize_t more = ::recv(first.get(), challenge.data() + got, challenge.size() - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
    return got == challenge.size();
  }));
  DiallingHandshake dialler(secret, {secret.derive_job_id(), 0, Purpose::kControl, 2, 0, 0},
                            *make_nonce());
  ASSERT_EQ(dialler.take_challenge(challenge), Verdict::kWelcome);
  const auto recorded = dialler.claim_frame();
  const FileDescriptor second = knock();
  say(second, {reinterpret_cast<const char*>(recorded.data()), recorded.size()});
  EXPECT_TRUE(is_ended(second));
  expected_ = [](const Refusals& refusals) { return refusals.secret == 1; };
}

}  // namespace
}  // namespace fasthorovod::transport
