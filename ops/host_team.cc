#include "ops/host_team.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/host_team_impl.h"

namespace fasthorovod::ops {

namespace {

// No layout asks for more, but for hosts of very many ranks.
constexpr std::size_t kLargestLayout = std::size_t{32} << 20;

}  // namespace

const HostSeat& HostTeam::Impl::seat_of(int rank) const {
  const auto seat = std::ranges::find(seats_, rank, &HostSeat::rank);
  assert(seat != seats_.end() && "operations are among ranks of this host");
  return *seat;
}

std::vector<HostSeat> HostTeam::Impl::seats_of(const HostOperation& operation) const {
  const HostLayout& layout = operation.layout;
  std::vector<HostSeat> seats;
  for (const int position : layout.hosts[static_cast<std::size_t>(layout.host)]) {
    seats.push_back(seat_of(operation.members[static_cast<std::size_t>(position)]));
  }
  return seats;
}

std::span<std::byte> HostTeam::Impl::reserve(std::size_t bytes, Door door, bool alone) {
  const std::span<std::byte> area = areas_.reserve(bytes, door, alone);
  if (!area.empty()) return area;
  const std::lock_guard lock(mutex_);
  const bool wanted = std::exchange(space_wanted_, true);
  if (release_spent(0)) {
    const std::span<std::byte> found = areas_.reserve(bytes, door, alone);
    if (!found.empty()) {
      space_wanted_ = wanted;
      return found;
    }
  }
  wake_thread();
  return {};
}

std::uint64_t HostTeam::Impl::offset_of(std::span<const std::byte> area) const {
  return static_cast<std::uint64_t>(area.data() - own_.arena.data());
}

void HostTeam::Impl::start(HostOperation operation) {
  std::unique_lock lock(mutex_);
  if (over_) {
    lock.unlock();
    return operation.done(*over_);
  }
  const std::uint64_t offset = offset_of(operation.area);
  const std::vector<HostSeat> seats = seats_of(operation);
  runners_.emplace_back(std::move(operation), table_, offset, seats);
  wake_thread();
}

// Under the lock.
void HostTeam::Impl::wake_thread() {
  if (over_ || taken_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  calls_.fetch_add(1);
  if (parked_) {
    called_.notify_all();
  } else {
    table_.bell().ring();
  }
}

HostRunner* HostTeam::Impl::find(const HostKey& key) {
  const auto runner = std::ranges::find(runners_, key, &HostRunner::key);
  return runner == runners_.end() ? nullptr : &*runner;
}

void HostTeam::Impl::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!work(lock)) rest(lock);
  }
  end_all(lock);
}

// Runs one step and tells what has become true; false when there was nothing to do.
bool HostTeam::Impl::work(std::unique_lock<std::mutex>& lock) {
  HostNews news;
  HostRunner* runner = nullptr;
  const std::optional<HostStep> step = choose(news, runner);
  bool space = release_what_is_over(runners_, 0);
  if (space_wanted_ && release_spent(0)) {
    space_wanted_ = false;
    space = true;
  }
  if (!step && !space && news.empty()) return false;
  lock.unlock();
  tell(news, space);
  if (step) runner->run(*step);
  lock.lock();
  steps_.fetch_add(1, std::memory_order_relaxed);
  if (!step) return true;
  HostNews outcome;
  runner->ran(*step, outcome);
  lock.unlock();
  tell(outcome, false);
  lock.lock();
  return true;
}

// The first step that can run, of the oldest operation that has one.
std::optional<HostStep> HostTeam::Impl::choose(HostNews& news, HostRunner*& chosen) {
  for (HostRunner& runner : runners_) {
    runner.look(news);
    if (std::optional<HostStep> step = runner.next()) {
      chosen = &runner;
      return step;
    }
  }
  return std::nullopt;
}

// The last few small ones are kept.
bool HostTeam::Impl::release_what_is_over(std::list<HostRunner>& runners, std::size_t kept) {
  const auto is_small = [](const HostRunner& runner) {
    return runner.operation().layout.is_small();
  };
  auto small = static_cast<std::size_t>(std::ranges::count_if(runners, is_small));
  bool space = false;
  for (auto runner = runners.begin(); runner != runners.end();) {
    const bool is_kept = is_small(*runner) && small <= kept;
    if (is_kept || !runner->releasable()) {
      ++runner;
      continue;
    }
    if (is_small(*runner)) --small;
    runner->retire();
    areas_.release(runner->operation().area);
    runner = runners.erase(runner);
    space = true;
  }
  return space;
}

bool HostTeam::Impl::release_spent(std::size_t kept) {
  HostNews none;  // what is over has nothing to tell
  for (HostRunner& runner : spent_) runner.look(none);
  return release_what_is_over(spent_, kept);
}

void HostTeam::Impl::tell(const HostNews& news, bool space) const {
  for (HostBell* bell : news.bells) bell->ring();
  for (const Disagreement& disagreement : news.disagreements) hooks_.disagreement(disagreement);
  for (const HostGates& gates : news.gates) {
    hooks_.open(gates.group, gates.sequence, gates.pieces);
  }
  for (const HostEnd& end : news.ends) end.done(end.status);
  if (space) hooks_.space();
}

bool HostTeam::Impl::has_use_for_bell() const {
  return !runners_.empty() || (space_wanted_ && !spent_.empty());
}

void HostTeam::Impl::rest(std::unique_lock<std::mutex>& lock) {
  if (!has_use_for_bell()) return park(lock);
  HostBell& bell = table_.bell();
  const std::uint32_t since = bell.doze();
  if (over_ || work(lock)) return bell.stay_awake();
  lock.unlock();
  bell.sleep(since, watch_);
  lock.lock();
}

// Mates have nothing to tell it: it leaves the bell to who drives.
void HostTeam::Impl::park(std::unique_lock<std::mutex>& lock) {
  parked_ = true;
  const std::uint64_t seen = calls_.load();
  lock.unlock();
  for (HostWatch::Turn turn = watch_.begin(); calls_.load() == seen && watch_.goes_on(turn);) {
    watch_.pause();
  }
  lock.lock();
  called_.wait(lock, [this] { return !taken_ && (over_ || has_use_for_bell()); });
  parked_ = false;
}

void HostTeam::Impl::end_all(std::unique_lock<std::mutex>& lock) {
  HostNews news;
  for (HostRunner& runner : runners_) {
    runner.give_up(*over_, news);
  }
  lock.unlock();
  tell(news, false);
  lock.lock();
}

void HostTeam::Impl::stop(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!over_) over_ = error;
    stopping_.store(true);
    called_.notify_all();
  }
  table_.bell().ring();
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  called_.wait(lock, [this] { return driven_.empty() && !taken_; });
}

std::optional<ChunkBoard::Wait> HostTeam::Impl::waiting() const {
  const std::lock_guard lock(mutex_);
  for (const HostRunner& runner : runners_) {
    const std::vector<int> ranks = runner.awaited();
    if (ranks.empty()) continue;
    return ChunkBoard::Wait{
        is_planned(runner.operation().group) ? ranks.front() : -1,
        fmt::format("{} waits for rank {}", runner.operation().title, fmt::join(ranks, ", "))};
  }
  return std::nullopt;
}

std::vector<int> HostTeam::Impl::awaited(const HostKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto runner = std::ranges::find(runners_, key, &HostRunner::key);
  return runner == runners_.end() ? std::vector<int>{} : runner->absent();
}

std::size_t HostTeam::table_bytes() { return HostTable::bytes(); }

std::size_t HostTeam::largest_area(std::size_t bytes) {
  const std::size_t part = bytes / (2 * std::size_t{Executor::kWindow});
  return part / transport::Arena::kPage * transport::Arena::kPage;
}

std::size_t HostTeam::spare_bytes(std::size_t largest_area) {
  return HostAreas::kKeptEntries * std::min(largest_area, kLargestLayout);
}

HostTeam::HostTeam(const core::World& world, std::vector<HostSeat> seats,
                   transport::ArenaHeap& heap, std::size_t largest_area, HostHooks hooks)
    : impl_(std::make_unique<Impl>(world, std::move(seats), heap, largest_area, std::move(hooks))) {
}

HostTeam::~HostTeam() { stop({core::ErrorCode::kShutdown, "the engine was shut down"}); }

std::span<std::byte> HostTeam::reserve(std::size_t bytes, Door door, bool alone) {
  return impl_->reserve(bytes, door, alone);
}
void HostTeam::give_back(std::span<std::byte> area) { impl_->give_back(area); }
void HostTeam::start(HostOperation operation) { impl_->start(std::move(operation)); }
void HostTeam::begin(HostOperation operation) { impl_->begin(std::move(operation)); }
bool HostTeam::begin_again(const HostKind& kind, const HostCall& call) {
  return impl_->begin_again(kind, call);
}
std::span<std::byte> HostTeam::driven_area() const { return impl_->driven_area(); }
std::optional<core::Status> HostTeam::drive(const std::atomic<bool>& wanted,
                                            core::TimePoint until) {
  return impl_->drive(wanted, until);
}
void HostTeam::hand_over(std::string title, std::function<void(core::Status)> done) {
  impl_->hand_over(std::move(title), std::move(done));
}
void HostTeam::nudge() { impl_->nudge(); }
bool HostTeam::try_take() { return impl_->try_take(); }
bool HostTeam::step() { return impl_->step(); }
void HostTeam::sleep(const std::atomic<bool>& wanted, core::Duration limit) {
  impl_->sleep(wanted, limit);
}
bool HostTeam::stopping() const { return impl_->stopping(); }
void HostTeam::give_place_back() { impl_->give_place_back(); }

void HostTeam::piece_done(std::uint32_t group, std::uint64_t sequence, std::uint32_t piece) {
  impl_->change({group, sequence}, [&](HostRunner& runner) { runner.piece_done(piece); });
}
void HostTeam::transfers_ended(std::uint32_t group, std::uint64_t sequence) {
  impl_->change({group, sequence}, [](HostRunner& runner) { runner.transfers_ended(); });
}
void HostTeam::fail(std::uint32_t group, std::uint64_t sequence, const Error& error) {
  impl_->change({group, sequence}, [&](HostRunner& runner) { runner.fail(error); });
}

void HostTeam::stop(const Error& error) { impl_->stop(error); }
std::optional<ChunkBoard::Wait> HostTeam::waiting() const { return impl_->waiting(); }
std::vector<int> HostTeam::awaited(std::uint32_t group, std::uint64_t sequence) const {
  return impl_->awaited({group, sequence});
}
std::uint64_t HostTeam::progress() const { return impl_->progress(); }

}  // namespace fasthorovod::ops
