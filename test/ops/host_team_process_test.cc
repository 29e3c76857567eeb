// Teams whose ranks are processes: each maps the arenas it was handed by descriptor.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <numeric>
#include <vector>

#include "ops/host_team.h"
#include "test/ops/host_allreduce.h"

namespace fasthorovod::ops {
namespace {

using core::Error;
using core::ErrorCode;
using transport::Arena;
using transport::FileDescriptor;

constexpr std::size_t kHeapBytes = 16U << 20;
constexpr std::size_t kLentBytes = 64U << 20;  // takes room where it is used
constexpr std::size_t kLargestArea = 1U << 20;
constexpr std::uint32_t kGroup = kOrderedSpace | 1;

/// A rank's process: its team, over arenas of its own mapping.
struct Member {
  Member(int rank, const std::vector<int>& descriptors) {
    world.rank = rank;
    std::vector<HostSeat> seats;
    for (std::size_t mate = 0; mate < descriptors.size(); ++mate) {
      arenas.push_back(*Arena::open(FileDescriptor(::dup(descriptors[mate]))));
      seats.push_back({static_cast<int>(mate), arenas.back().bytes()});
    }
    const Arena& own = arenas[static_cast<std::size_t>(rank)];
    heap = std::make_unique<transport::ArenaHeap>(
        own, own.bytes().subspan(HostTeam::table_bytes(), kHeapBytes));
    lent = own.bytes().last(kLentBytes);
    team = std::make_unique<HostTeam>(world, seats, *heap, kLargestArea, HostHooks{});
  }

  std::future<core::Status> begin(HostAllreduce& allreduce) {
    const std::uint64_t bytes = allreduce.layout(world.rank).area_bytes();
    allreduce.lend(world.rank, lent);
    lent = lent.subspan(allreduce.lent_bytes(world.rank));
    auto promise = std::make_shared<std::promise<core::Status>>();
    HostOperation operation = allreduce.operation(world.rank, team->reserve(bytes, Door::kOrdered));
    operation.done = [promise](const core::Status& status) { promise->set_value(status); };
    team->start(std::move(operation));
    return promise->get_future();
  }

  core::World world;
  std::vector<Arena> arenas;
  std::unique_ptr<transport::ArenaHeap> heap;
  std::span<std::byte> lent;  // for callers' buffers
  std::unique_ptr<HostTeam> team;
};

HostAllreduceSpec spec_of(int ranks, std::uint64_t elements, std::uint64_t sequence) {
  HostAllreduceSpec spec;
  spec.hosts = Hosts{std::vector<int>(static_cast<std::size_t>(ranks))};
  std::iota(spec.hosts[0].begin(), spec.hosts[0].end(), 0);
  spec.elements = elements;
  spec.group = kGroup;
  spec.sequence = sequence;
  spec.seed = sequence;
  spec.largest_area = kLargestArea;
  // All mixes, and rank by rank another one.
  for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(ranks); ++rank) {
    const std::uint64_t mix = sequence + rank * (1 + sequence / 4);
    spec.lent.push_back({mix % 2 == 1, mix / 2 % 2 == 1});
  }
  return spec;
}

/// Runs `body` in a process for each rank; their process ids.
std::vector<pid_t> fork_ranks(int ranks, const std::function<void(Member&)>& body) {
  // Copies: an arena's own descriptor does not outlive a fork.
  std::vector<FileDescriptor> copies;
  std::vector<int> descriptors;
  for (int rank = 0; rank < ranks; ++rank) {
    const Arena arena = *Arena::create(HostTeam::table_bytes() + kHeapBytes + kLentBytes);
    copies.emplace_back(::dup(arena.fd()));
    descriptors.push_back(copies.back().get());
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      {
        Member member(rank, descriptors);
        body(member);
      }
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  return children;
}

int exit_code(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(HostTeamProcesses, ReduceThroughSharedMemory) {
  constexpr int kRanks = 3;
  const auto children = fork_ranks(kRanks, [](Member& member) {
    std::vector<std::unique_ptr<HostAllreduce>> allreduces;
    for (std::uint64_t i = 0; i < 40; ++i) {
      allreduces.push_back(std::make_unique<HostAllreduce>(spec_of(kRanks, i * i * 40, i)));
    }
    // Four at a time: no more than there is certainly room for.
    for (std::size_t first = 0; first < allreduces.size(); first += 4) {
      std::vector<std::future<core::Status>> outcomes;
      for (std::size_t i = first; i < first + 4; ++i) {
        outcomes.push_back(member.begin(*allreduces[i]));
      }
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(outcomes[i].get());
        allreduces[first + i]->check(member.world.rank);
      }
    }
  });
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
}

constexpr int kVictim = 1;
constexpr int kTooLate = 3;  // exit code of a rank whose sum was complete

/// Runs a large sum of three ranks, amid which one dies. The exit codes of the others.
std::vector<int> kill_amid_a_sum() {
  constexpr int kRanks = 3;
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const auto children = fork_ranks(kRanks, [&](Member& member) {
    ::close(pipe[1]);
    HostAllreduce small(spec_of(kRanks, 1000, 1));
    EXPECT_TRUE(member.begin(small).get());
    HostAllreduce large(spec_of(kRanks, 1U << 20, 2));
    const std::uint64_t before = member.team->progress();
    auto outcome = member.begin(large);
    if (member.world.rank == kVictim) {
      while (member.team->progress() < before + 5) ::sched_yield();
      (void)::raise(SIGKILL);
    }
    char byte = 0;
    EXPECT_EQ(::read(pipe[0], &byte, 1), 0);  // ends when the parent closes its side
    if (member.world.rank == 0) {
      // That alone does not end it if the victim died while it wrote to what this rank lends.
      member.team->fail(kGroup, 2, {ErrorCode::kPeerLost, "", kVictim});
      member.team->stop({ErrorCode::kShutdown, "", 0});
    }
    if (member.world.rank == 2) member.team->stop({ErrorCode::kPeerLost, "", kVictim});
    const core::Status status = outcome.get();
    if (status) ::_exit(kTooLate);
    EXPECT_EQ(status.error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(status.error().culprit, kVictim);
  });
  EXPECT_EQ(exit_code(children[kVictim]), 128 + SIGKILL);
  ::close(pipe[1]);
  std::vector<int> codes{exit_code(children[0]), exit_code(children[2])};
  ::close(pipe[0]);
  return codes;
}

// The survivors can not know it by themselves: whoever watches the processes tells them. On a busy
// machine the victim's team may be done before the victim gets to kill itself.
TEST(HostTeamProcesses, SurvivorsOfAKilledMateFailAndStop) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::vector<int> codes = kill_amid_a_sum();
    for (const int code : codes) ASSERT_TRUE(code == 0 || code == kTooLate) << code;
    if (codes == std::vector<int>{0, 0}) return;
  }
  FAIL() << "the victim was too late each time";
}

}  // namespace
}  // namespace fasthorovod::ops
