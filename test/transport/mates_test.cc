// Ranks of one host hand each other their arenas: ranks as threads, and as processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "test/transport/mate_group.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;
using core::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Mates, HoldTheMemoryOfAllRanksOfTheirHost) {
  for (const int size : {2, 3, 16}) {
    World world(Mode::kByHand, size);
    const auto met = meet_all(world);
    for (int rank = 0; rank < size; ++rank) {
      std::vector<int> expected;
      for (int other = 0; other < size; ++other) {
        if (other != rank) expected.push_back(other);
      }
      EXPECT_EQ(ranks_of(met[static_cast<std::size_t>(rank)]), expected);
      EXPECT_EQ(ranks_in_memory(met[static_cast<std::size_t>(rank)]), expected);
    }
    met[0].mates->front().arena.bytes()[100] = std::byte{77};
    EXPECT_EQ(met[1].arena.bytes()[100], std::byte{77});
  }
}

TEST(Mates, AreTheRanksOfOneHostOnly) {
  World world(Mode::kStore, 6);
  const auto met = meet_all(world, [](core::Config& config) {
    config.host_identity = std::vector<const char*>{
        "a", "a", "b", "a", "c", "b"}[static_cast<std::size_t>(config.rank)];
  });
  EXPECT_THAT(ranks_of(met[0]), ElementsAre(1, 3));
  EXPECT_THAT(ranks_of(met[1]), ElementsAre(0, 3));
  EXPECT_THAT(ranks_of(met[2]), ElementsAre(5));
  EXPECT_THAT(ranks_of(met[3]), ElementsAre(0, 1));
  EXPECT_THAT(ranks_of(met[4]), IsEmpty());
  EXPECT_THAT(ranks_of(met[5]), ElementsAre(2));
  EXPECT_EQ(ranks_in_memory(met[3]), ranks_of(met[3]));
}

TEST(Mates, LeaveTheControlPlaneToTheEngine) {
  World world(Mode::kByHand, 3);
  auto met = meet_all(world);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (Met& each : met) ranks.push_back(std::make_unique<Rank>(std::move(each.plane)));
  ranks[2]->send(0, "after the meeting");
  EXPECT_EQ(ranks[0]->receive(), "after the meeting");
  ranks[0]->send(1, "to you too");
  EXPECT_EQ(ranks[1]->receive(), "to you too");
}

TEST(Mates, AloneOnTheirHostsOpenNoDoor) {
  const auto before = doors_of_this_process();
  World world(Mode::kByHand, 3);
  auto met = meet_all(
      world, [](core::Config& config) { config.host_identity = std::to_string(config.rank); });
  EXPECT_EQ(doors_of_this_process(), before);
  for (const Met& each : met) EXPECT_THAT(ranks_of(each), IsEmpty());
}

TEST(Mates, OfAWorldOfOneAreNone) {
  LogLines log;
  auto plane = ControlPlane::connect(core::Config{}, 0, log.log());
  ASSERT_TRUE(plane);
  const auto arena = Arena::create(1);
  EXPECT_THAT(*(*plane)->meet_mates(*arena), IsEmpty());
}

TEST(Mates, LeaveNothingBehindInManyStarts) {
  const auto doors_before = doors_of_this_process();
  World world(Mode::kByHand, 3);
  meet_all(world, {}, 0).clear();
  const std::size_t before = open_descriptors();
  for (std::uint32_t epoch = 1; epoch <= 30; ++epoch) {
    const auto met = meet_all(world, {}, epoch);
    EXPECT_EQ(doors_of_this_process(), doors_before);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Mates, HoldDescriptorsThatNoChildInherits) {
  World world(Mode::kByHand, 2);
  const auto met = meet_all(world);
  const int fd = met[0].mates->front().arena.fd();
  EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(fd, F_GET_SEALS) < 0 ? 0 : 1);  // /dev/null has no seals
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

core::Config impatient(core::Config config) {
  config.start_timeout = 1s;
  return config;
}

void expect_one_error(std::vector<std::future<Met>>& starts, int culprit, ErrorCode code,
                      const std::string& words) {
  for (auto& start : starts) {
    const Met met = start.get();
    ASSERT_FALSE(met.mates);
    EXPECT_EQ(met.mates.error().culprit, culprit) << met.mates.error().message;
    EXPECT_EQ(met.mates.error().code, code) << met.mates.error().message;
    EXPECT_THAT(met.mates.error().message, HasSubstr(words));
  }
}

TEST(Mates, NameARankThatNeverMeets) {
  World world(Mode::kByHand, 4);
  std::vector<std::future<Met>> starts;
  for (const int rank : {0, 1, 3}) starts.push_back(meet(world, impatient(world.config(rank))));
  auto absent = world.start(world.config(2)).get();
  ASSERT_TRUE(absent);
  expect_one_error(starts, 2, ErrorCode::kTimedOut, "rank 2 of this host did not hand over memory");
}

TEST(Mates, AllHearWhyOneCanNotStart) {
  for (const int culprit : {0, 2}) {
    World world(Mode::kByHand, 4);
    std::vector<std::future<Met>> starts;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != culprit) starts.push_back(meet(world, world.config(rank)));
    }
    auto plane = world.start(world.config(culprit)).get();
    ASSERT_TRUE(plane);
    (*plane)->give_up({ErrorCode::kUnavailable, "there is no memory here"});
    plane->reset();
    expect_one_error(starts, culprit, ErrorCode::kUnavailable, ": there is no memory here");
  }
}

TEST(Mates, AllHearOfARankThatLeft) {
  for (const int culprit : {0, 1, 3}) {
    World world(Mode::kByHand, 4);
    std::vector<std::future<Met>> starts;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != culprit) starts.push_back(meet(world, world.config(rank)));
    }
    world.start(world.config(culprit)).get()->reset();
    for (auto& start : starts) {
      const Met met = start.get();
      ASSERT_FALSE(met.mates);
      EXPECT_EQ(met.mates.error().code, ErrorCode::kPeerLost) << met.mates.error().message;
      EXPECT_EQ(met.mates.error().culprit, culprit) << met.mates.error().message;
    }
  }
}

// One rank as a process: 0 when it could read and write the memory of each mate.
pid_t spawn_rank(World& world, int rank, int size) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  Met met = meet_here(world, world.config(rank));
  if (!met.mates || ranks_in_memory(met) != ranks_of(met)) ::_exit(1);
  const auto greet = [rank](const Mate& mate) {
    mate.arena.bytes()[100 + static_cast<std::size_t>(rank)] = std::byte{1};
  };
  for (const Mate& mate : *met.mates) greet(mate);
  const auto greeted = [&] {
    const auto marks = met.arena.bytes().subspan(100, static_cast<std::size_t>(size));
    return std::ranges::count(marks, std::byte{1}) == size - 1;
  };
  ::_exit(eventually(greeted) ? 0 : 2);
}

TEST(Mates, MeetAsProcessesOfTwoJobsAtOnce) {
  constexpr int kRanks = 4;
  World one(Mode::kByHand, kRanks);
  World two(Mode::kByHand, kRanks);
  std::vector<pid_t> children;
  for (int rank = kRanks - 1; rank >= 0; --rank) {
    children.push_back(spawn_rank(one, rank, kRanks));
    children.push_back(spawn_rank(two, rank, kRanks));
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace fasthorovod::transport
