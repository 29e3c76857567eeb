#include "test/ops/host_teams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ops/executor.h"

namespace fasthorovod::ops {

namespace {

constexpr std::size_t kLentBytes = std::size_t{128} << 20;  // takes room where it is used

}  // namespace

HostTeams::Rank::Rank(std::size_t heap_bytes)
    : arena(*transport::Arena::create(HostTeam::table_bytes() + heap_bytes + kLentBytes)),
      heap(arena, arena.bytes().subspan(HostTeam::table_bytes(), heap_bytes)),
      lent(arena, arena.bytes().subspan(HostTeam::table_bytes() + heap_bytes)) {}

HostTeams::HostTeams(Options options) : options_(std::move(options)) {
  host_of_rank_.resize(static_cast<std::size_t>(count_ranks(options_.hosts)));
  for (std::size_t host = 0; host < options_.hosts.size(); ++host) {
    for (const int rank : options_.hosts[host]) {
      host_of_rank_[static_cast<std::size_t>(rank)] = static_cast<int>(host);
    }
  }
  for (std::size_t rank = 0; rank < host_of_rank_.size(); ++rank) {
    ranks_.push_back(std::make_unique<Rank>(options_.heap_bytes));
    ranks_.back()->world.rank = static_cast<int>(rank);
  }
  for (const std::vector<int>& host : options_.hosts) {
    for (const int number : host) {
      Rank& rank = *ranks_[static_cast<std::size_t>(number)];
      rank.team = std::make_unique<HostTeam>(rank.world, seats(rank, host), rank.heap,
                                             options_.largest_area, hooks(number));
    }
  }
  network_ = std::thread([this] { network(); });
}

HostTeams::~HostTeams() {
  for (const auto& rank : ranks_) {
    if (rank->team) rank->team->stop({core::ErrorCode::kShutdown, "the test is over"});
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  network_.join();
}

std::vector<HostSeat> HostTeams::seats(Rank& rank, const std::vector<int>& host) const {
  std::vector<HostSeat> seats;
  for (const int mate : host) {
    const transport::Arena& arena = ranks_[static_cast<std::size_t>(mate)]->arena;
    std::span<std::byte> bytes = arena.bytes();
    if (options_.own_mappings && mate != rank.world.rank) {
      rank.mappings.push_back(
          *transport::Arena::open(transport::FileDescriptor(::dup(arena.fd()))));
      bytes = rank.mappings.back().bytes();
    }
    seats.push_back({mate, bytes});
  }
  return seats;
}

HostHooks HostTeams::hooks(int rank) {
  HostHooks hooks;
  hooks.open = [this, rank](std::uint32_t group, std::uint64_t sequence, std::uint32_t pieces) {
    opened(rank, {group, sequence}, pieces);
  };
  hooks.disagreement = [this, rank](const Disagreement& found) {
    const std::lock_guard lock(mutex_);
    ranks_[static_cast<std::size_t>(rank)]->disagreements.push_back(found);
    changed_.notify_all();
  };
  hooks.space = [this, rank] {
    start_what_fits(rank);
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  };
  return hooks;
}

TeamRun& HostTeams::add(std::vector<int> members, HostAllreduceSpec spec) {
  Hosts by_host(options_.hosts.size());
  for (std::size_t position = 0; position < members.size(); ++position) {
    const auto host = host_of_rank_[static_cast<std::size_t>(members[position])];
    by_host[static_cast<std::size_t>(host)].push_back(static_cast<int>(position));
  }
  std::erase_if(by_host, [](const std::vector<int>& ranks) { return ranks.empty(); });
  spec.hosts = std::move(by_host);
  spec.members = std::move(members);
  spec.largest_area = options_.largest_area;
  auto run = std::make_unique<TeamRun>(std::move(spec));
  for (int position = 0; position < run->allreduce.size(); ++position) {
    const std::size_t bytes = run->allreduce.lent_bytes(position);
    const auto rank = static_cast<std::size_t>(run->allreduce.member(position));
    if (bytes > 0) run->allreduce.lend(position, ranks_[rank]->lent.allocate(bytes));
  }
  const std::lock_guard lock(mutex_);
  runs_.push_back(std::move(run));
  return *runs_.back();
}

void HostTeams::begin(TeamRun& run, int position, std::uint32_t fingerprint) {
  const int rank = run.allreduce.member(position);
  {
    Rank& self = *ranks_[static_cast<std::size_t>(rank)];
    const std::lock_guard lock(self.mutex);
    self.waiting[door_of(run.allreduce.spec().group)].push_back({&run, position, fingerprint});
  }
  start_what_fits(rank);
}

void HostTeams::start_what_fits(int rank) {
  Rank& self = *ranks_[static_cast<std::size_t>(rank)];
  const std::lock_guard lock(self.mutex);
  for (auto& [door, waiting] : self.waiting) {
    while (!waiting.empty() && start(self, waiting.front())) waiting.pop_front();
  }
}

// False: there is no area for it now.
bool HostTeams::start(Rank& rank, const Waiting& waiting) {
  const auto& [run, position, fingerprint] = waiting;
  const auto at = static_cast<std::size_t>(position);
  const std::span<std::byte> area = rank.team->reserve(run->allreduce.layout(position).area_bytes(),
                                                       door_of(run->allreduce.spec().group));
  if (area.empty()) return false;
  HostOperation operation;
  {
    const std::lock_guard lock(mutex_);
    run->areas[at] = area;
    operation = run->allreduce.operation(position, area);
  }
  operation.fingerprint = fingerprint;
  operation.done = [promise = &run->done[at]](const core::Status& status) {
    promise->set_value(status);
  };
  rank.team->start(std::move(operation));
  return true;
}

void HostTeams::begin_all(const std::vector<TeamRun*>& runs, std::uint64_t seed) {
  std::vector<std::pair<TeamRun*, int>> starts;
  for (TeamRun* run : runs) {
    for (int position = 0; position < run->allreduce.size(); ++position) {
      starts.emplace_back(run, position);
    }
  }
  std::mt19937_64 random(seed);
  std::ranges::shuffle(starts, random);
  for (const auto& [run, position] : starts) begin(*run, position);
}

void HostTeams::begin_in_order(const std::vector<TeamRun*>& runs, std::uint64_t seed) {
  for (TeamRun* run : runs) begin_all({run}, seed++);
}

core::Status HostTeams::outcome(TeamRun& run, int position) {
  auto& outcome = run.outcomes[static_cast<std::size_t>(position)];
  if (outcome.wait_until(deadline_) != std::future_status::ready) {
    ADD_FAILURE() << "position " << position << " of " << run.allreduce.spec().sequence
                  << " is not done";
    return core::Error{core::ErrorCode::kTimedOut, "not done"};
  }
  return outcome.get();
}

void HostTeams::expect_success(TeamRun& run) {
  for (int position = 0; position < run.allreduce.size(); ++position) {
    const core::Status status = outcome(run, position);
    EXPECT_TRUE(status) << status.error().message;
    if (status) run.allreduce.check(position);
  }
}

void HostTeams::fail(TeamRun& run, const core::Error& error) {
  {
    std::unique_lock lock(mutex_);
    run.over = true;
    changed_.wait(lock, [&run] { return !run.busy; });
  }
  const HostAllreduceSpec& spec = run.allreduce.spec();
  for (const int rank : spec.members) {
    team(rank).fail(spec.group, spec.sequence, error);
    team(rank).transfers_ended(spec.group, spec.sequence);
  }
}

void HostTeams::opened(int rank, HostKey key, std::uint32_t pieces) {
  if (options_.opened) options_.opened(rank, key, pieces);
  const std::lock_guard lock(mutex_);
  for (const auto& run : runs_) {
    const HostAllreduceSpec& spec = run->allreduce.spec();
    if (HostKey{spec.group, spec.sequence} != key) continue;
    const auto position = std::ranges::find(spec.members, rank) - spec.members.begin();
    run->open[static_cast<std::size_t>(position)] = pieces;
  }
  changed_.notify_all();
}

void HostTeams::network() {
  std::mt19937_64 random(1);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!options_.network || !exchange_one(lock, random)) changed_.wait(lock);
  }
}

bool HostTeams::exchange_one(std::unique_lock<std::mutex>& lock, std::mt19937_64& random) {
  std::vector<std::pair<TeamRun*, std::uint32_t>> ready;
  for (const auto& run : runs_) {
    if (run->over || run->allreduce.spec().hosts.size() < 2) continue;
    for (std::uint32_t piece = 0; piece < run->exchanged.size(); ++piece) {
      if (!run->exchanged[piece] && std::ranges::min(run->open) > piece) {
        ready.emplace_back(run.get(), piece);
      }
    }
  }
  if (ready.empty()) return false;
  const auto [run, piece] = ready[random() % ready.size()];
  run->busy = true;
  lock.unlock();
  run->allreduce.exchange(piece, run->areas);
  const HostAllreduceSpec& spec = run->allreduce.spec();
  for (const int rank : spec.members) team(rank).piece_done(spec.group, spec.sequence, piece);
  lock.lock();
  run->exchanged[piece] = true;
  run->busy = false;
  changed_.notify_all();
  return true;
}

bool HostTeams::all_areas_are_back() const {
  return std::ranges::all_of(ranks_, [this](const auto& rank) {
    return rank->heap.used() == Executor::kWindow * options_.largest_area;
  });
}

bool HostTeams::all_areas_come_back() {
  return eventually([this] { return all_areas_are_back(); });
}

std::vector<std::size_t> HostTeams::heaps_after_the_end() {
  std::vector<std::size_t> used;
  for (const auto& rank : ranks_) rank->team.reset();
  for (const auto& rank : ranks_) used.push_back(rank->heap.used());
  return used;
}

}  // namespace fasthorovod::ops
