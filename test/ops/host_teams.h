// Teams of several hosts in one process, and a network between them: a thread that does the lanes'
// part of operations that cross hosts, piece by piece in a random order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ops/host_team.h"
#include "test/ops/host_allreduce.h"

namespace fasthorovod::ops {

/// One all-reduce on all its ranks.
struct TeamRun {
  explicit TeamRun(HostAllreduceSpec spec)
      : allreduce(std::move(spec)),
        done(static_cast<std::size_t>(allreduce.size())),
        areas(done.size()),
        open(done.size(), 0),
        exchanged(allreduce.layout(0).pieces, false) {
    for (auto& promise : done) outcomes.push_back(promise.get_future());
  }
  HostAllreduce allreduce;
  std::vector<std::promise<core::Status>> done;
  std::vector<std::future<core::Status>> outcomes;
  // Guarded by the network's lock:
  std::vector<std::span<std::byte>> areas;
  std::vector<std::uint32_t> open;  // gates of that many pieces, by position
  std::vector<bool> exchanged;      // by piece
  bool busy = false;                // the network works on it
  bool over = false;
};

class HostTeams final {
 public:
  struct Options {
    Hosts hosts{{0, 1}};  // world ranks
    std::size_t heap_bytes = 16U << 20;
    std::size_t largest_area = 64U << 10;
    bool own_mappings = false;  // each rank maps its mates' arenas itself, as processes do
    bool network = true;        // false: the test's own affair
    /// What HostHooks::open says, on a team's thread.
    std::function<void(int rank, HostKey key, std::uint32_t pieces)> opened{};
  };

  explicit HostTeams(Options options);
  ~HostTeams();

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  HostTeam& team(int rank) { return *ranks_[static_cast<std::size_t>(rank)]->team; }

  /// Of world ranks, which it spreads over hosts as they are; largest_area is the teams'.
  TeamRun& add(std::vector<int> members, HostAllreduceSpec spec);

  /// Starts it at a position; later, when there is no area for it now.
  void begin(TeamRun& run, int position, std::uint32_t fingerprint = 77);
  /// All operations on all their ranks, in a random order of its own on each rank.
  void begin_all(const std::vector<TeamRun*>& runs, std::uint64_t seed);
  /// On each rank in the same order, as it must be where areas are scarce.
  void begin_in_order(const std::vector<TeamRun*>& runs, std::uint64_t seed);
  /// Its outcome there; fails the test when none comes.
  core::Status outcome(TeamRun& run, int position);
  /// Waits for all, and checks what came out.
  void expect_success(TeamRun& run);
  /// Fails it everywhere, and lets no lane touch it any more.
  void fail(TeamRun& run, const core::Error& error);

  /// Waits until a condition holds that changes with what hooks say; false: it never did.
  template <typename Condition>
  bool eventually(Condition condition) {
    std::unique_lock lock(mutex_);
    while (std::chrono::steady_clock::now() < deadline_) {
      if (condition()) return true;
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
    return false;
  }

  /// What a rank has heard. Inside eventually() only.
  const std::vector<Disagreement>& disagreements(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)]->disagreements;
  }

  [[nodiscard]] bool all_areas_are_back() const;
  /// Whether they come back in the end.
  bool all_areas_come_back();
  /// Ends all teams; heaps are as they were before, unless somebody may still read an area.
  std::vector<std::size_t> heaps_after_the_end();

 private:
  struct Waiting {
    TeamRun* run;
    int position;
    std::uint32_t fingerprint;
  };
  struct Rank {
    explicit Rank(std::size_t heap_bytes);
    core::World world;
    transport::Arena arena;
    transport::ArenaHeap heap;
    transport::ArenaHeap lent;  // for callers' buffers
    std::vector<transport::Arena> mappings;
    std::unique_ptr<HostTeam> team;
    std::vector<Disagreement> disagreements;
    std::mutex mutex;  // of those that wait for an area
    std::map<Door, std::deque<Waiting>> waiting;
  };

  [[nodiscard]] std::vector<HostSeat> seats(Rank& rank, const std::vector<int>& host) const;
  HostHooks hooks(int rank);
  void start_what_fits(int rank);
  bool start(Rank& rank, const Waiting& waiting);
  void opened(int rank, HostKey key, std::uint32_t pieces);
  void network();
  bool exchange_one(std::unique_lock<std::mutex>& lock, std::mt19937_64& random);

  const Options options_;
  const std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(50);
  std::vector<int> host_of_rank_;
  std::vector<std::unique_ptr<Rank>> ranks_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<TeamRun>> runs_;
  bool stopping_ = false;
  std::thread network_;
};

}  // namespace fasthorovod::ops
