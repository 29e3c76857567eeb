// Teams and chunk boards together, as the ranks of several hosts run an all-reduce: teams with
// their threads, boards whose flows this thread moves.
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "ops/algorithms/host_ring.h"
#include "ops/host_team.h"
#include "test/ops/board_network.h"
#include "test/ops/host_teams.h"

namespace fasthorovod::ops {
namespace {

/// What teams say of gates, until this thread passes it on.
class Gates {
 public:
  void say(int rank, HostKey key, std::uint32_t pieces) {
    const std::lock_guard lock(mutex_);
    said_.push_back({rank, key, pieces});
  }
  void pass_on(BoardNetwork& boards) {
    std::vector<Gate> said;
    {
      const std::lock_guard lock(mutex_);
      said.swap(said_);
    }
    for (const auto& [rank, key, pieces] : said) {
      boards.board(rank).open_gates(key.group, key.sequence, pieces);
    }
  }

 private:
  struct Gate {
    int rank;
    HostKey key;
    std::uint32_t pieces;
  };
  std::mutex mutex_;
  std::vector<Gate> said_;
};

Operation operation_on_board(HostTeams& teams, const TeamRun& run, int position) {
  const HostAllreduceSpec& spec = run.allreduce.spec();
  const int rank = run.allreduce.member(position);
  Operation operation;
  operation.epoch = 3;
  operation.group = spec.group;
  operation.sequence = spec.sequence;
  operation.fingerprint = 77;
  operation.title = "all-reduce " + std::to_string(spec.sequence);
  operation.description = operation.title;
  operation.schedule = host_ring(run.allreduce.layout(position), 1U << 10);
  operation.members = spec.members;
  operation.buffer = run.areas[static_cast<std::size_t>(position)];
  operation.type = spec.type;
  operation.reduction = spec.reduction;
  operation.held = true;
  operation.done = [](const core::Status& status) { EXPECT_TRUE(status); };
  operation.piece_done = [&team = teams.team(rank), group = spec.group, sequence = spec.sequence](
                             std::uint32_t piece) { team.piece_done(group, sequence, piece); };
  return operation;
}

bool all_done(const std::vector<TeamRun*>& runs) {
  for (const TeamRun* run : runs) {
    for (const auto& outcome : run->outcomes) {
      if (outcome.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    }
  }
  return true;
}

void check_hosts(const Hosts& hosts, std::uint32_t group) {
  Gates gates;
  HostTeams teams({.hosts = hosts,
                   .largest_area = 16U << 10,
                   .network = false,
                   .opened = [&](int rank, HostKey key, std::uint32_t pieces) {
                     gates.say(rank, key, pieces);
                   }});
  BoardNetwork boards({.size = teams.size(), .seed = 3});
  std::vector<int> all(static_cast<std::size_t>(teams.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<TeamRun*> runs;
  for (std::uint64_t i = 0; i < 6; ++i) {
    runs.push_back(&teams.add(all, {.elements = i * 5000,
                                    .in_place = i % 2 == 0,
                                    .group = group,
                                    .sequence = i,
                                    .any_bits = false,
                                    .seed = i}));
    for (const int rank : all) {
      teams.begin(*runs.back(), rank);
      // Before its first gate opens: that is passed on below.
      boards.board(rank).start(operation_on_board(teams, *runs.back(), rank));
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(50);
  while (!all_done(runs) && std::chrono::steady_clock::now() < deadline) {
    gates.pass_on(boards);
    if (!boards.step()) std::this_thread::yield();
  }
  EXPECT_TRUE(boards.faults().empty());
  for (TeamRun* run : runs) teams.expect_success(*run);
  EXPECT_TRUE(teams.all_areas_come_back());
}

TEST(HostTeamOnBoards, RunsTheNamedDoorAcrossUnevenHosts) {
  check_hosts({{0, 1, 2}, {3}, {4, 5}}, wire_group(0, Door::kNamed));
}

TEST(HostTeamOnBoards, RunsTheOrderedDoorAcrossHosts) {
  check_hosts({{0, 2}, {1, 3}}, wire_group(2, Door::kOrdered));
}

}  // namespace
}  // namespace fasthorovod::ops
