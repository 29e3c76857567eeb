// Strangers at the doors where ranks of one host meet: refused and counted, and no harm to the
// ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/transport/mate_group.h"
#include "transport/local_socket.h"
#include "transport/mate_hello.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;

class MateStrangers : public ::testing::Test {
 protected:
  // The ranks have opened their doors, and will look at them in meet().
  void SetUp() override {
    std::vector<std::future<World::Outcome>> starts;
    for (int rank = 0; rank < world_.size(); ++rank) {
      starts.push_back(world_.start(world_.config(rank)));
    }
    for (auto& start : starts) {
      auto plane = start.get();
      ASSERT_TRUE(plane) << plane.error().message;
      planes_.push_back(std::move(*plane));
    }
    doors_ = doors_of_this_process();
    ASSERT_EQ(doors_.size(), planes_.size());
  }

  // All ranks meet, whoever else is there.
  void expect_to_meet() {
    std::vector<std::future<core::Status>> meetings;
    for (auto& plane : planes_) {
      meetings.push_back(std::async(std::launch::async, [&plane]() -> core::Status {
        const auto arena = Arena::create(1);
        auto mates = plane->meet_mates(*arena);
        if (!mates) return std::move(mates).error();
        EXPECT_EQ(mates->size(), 2U);
        return {};
      }));
    }
    for (auto& meeting : meetings) {
      const core::Status met = meeting.get();
      EXPECT_TRUE(met) << met.error().message;
    }
    EXPECT_EQ(doors_of_this_process().size(), 0U);
  }

  // A stranger at each door.
  void knock(const std::function<void(const FileDescriptor&)>& say = {}) {
    for (const std::string& door : doors_) {
      auto socket = dial_locally(door);
      if (!socket) continue;  // a crowd is there already
      if (say) say(*socket);
      guests_.push_back(std::move(*socket));
    }
  }

  Refusals refused() { return planes_[0]->refused(); }

  World world_{Mode::kByHand, 3};
  std::vector<std::unique_ptr<ControlPlane>> planes_;
  std::set<std::string> doors_;
  std::vector<FileDescriptor> guests_;
};

TEST_F(MateStrangers, ThatSayNothing) {
  for (int i = 0; i < 200; ++i) knock();
  expect_to_meet();
}

TEST_F(MateStrangers, ThatLeaveAtOnce) {
  for (int i = 0; i < 200; ++i) knock();
  guests_.clear();
  expect_to_meet();
  EXPECT_EQ(refused().garbage, 200U);
}

TEST_F(MateStrangers, ThatSpeakSomethingElse) {
  knock([](const FileDescriptor& socket) { (void)::send(socket.get(), "GET /", 5, 0); });
  knock([](const FileDescriptor& socket) {
    const auto words = std::as_bytes(std::span("hand me your memory"));
    EXPECT_TRUE(send_parcel(socket.get(), words, socket.get()));
  });
  expect_to_meet();
  EXPECT_EQ(refused().garbage, 2U);
}

TEST_F(MateStrangers, ThatDoNotKnowTheSecret) {
  const core::World& world = planes_[0]->world();
  const Secret wrong = Secret::from_bytes(std::as_bytes(std::span("quite another secret")));
  const auto arena = Arena::create(1);
  for (const std::string& door : doors_) {
    auto socket = dial_locally(door);
    ASSERT_TRUE(socket);
    const auto hello = encode(MateHello{world.job, world.epoch, 2, 3}, {door, 0}, wrong);
    EXPECT_TRUE(send_parcel(socket->get(), hello, arena->fd()));
    guests_.push_back(std::move(*socket));
  }
  expect_to_meet();
  EXPECT_EQ(refused().secret, 1U);
}

TEST_F(MateStrangers, ThatKnowTheSecretAndSendNoArena) {
  const core::World& world = planes_[0]->world();
  const auto secret = Secret::from_file(world_.secret_file().path());
  for (const std::string& door : doors_) {
    auto socket = dial_locally(door);
    ASSERT_TRUE(socket);
    const auto hello = encode(MateHello{world.job, world.epoch, 2, 3}, {door, 0}, *secret);
    EXPECT_TRUE(send_parcel(socket->get(), hello, socket->get()));
    guests_.push_back(std::move(*socket));
  }
  expect_to_meet();
  EXPECT_EQ(refused().garbage, 1U);
}

TEST_F(MateStrangers, OfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can pose as somebody else";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    knock();
    ::_exit(guests_.size() == 3 ? 0 : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  expect_to_meet();
  EXPECT_EQ(refused().user, 1U);
  EXPECT_TRUE(world_.log().contain("refused a connection from user 65534 of this host"));
}

TEST_F(MateStrangers, ThatKnockAllTheTime) {
  std::atomic<bool> enough = false;
  std::vector<std::thread> crowd;
  for (int i = 0; i < 2; ++i) {
    crowd.emplace_back([this, &enough, i] {
      while (!enough.load()) {
        for (const std::string& door : doors_) {
          auto socket = dial_locally(door);
          if (socket && i == 0) (void)::send(socket->get(), "x", 1, MSG_NOSIGNAL);
        }
      }
    });
  }
  expect_to_meet();
  enough.store(true);
  for (std::thread& each : crowd) each.join();
}

}  // namespace
}  // namespace fasthorovod::transport
