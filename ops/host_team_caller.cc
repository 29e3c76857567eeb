// How callers run operations themselves (docs/design.md, "Who drives what").
#include <algorithm>
#include <iterator>
#include <utility>

#include "ops/host_team_impl.h"

namespace fasthorovod::ops {

namespace {

// Small operations of which a caller keeps what it has made: two of a kind, since mates may still
// look at the last one when the next begins.
constexpr std::size_t kKept = 8;

}  // namespace

void HostTeam::Impl::begin(HostOperation operation) {
  bool space = false;
  {
    const std::lock_guard lock(mutex_);
    space = release_spent(space_wanted_ ? 0 : kKept) && std::exchange(space_wanted_, false);
    note_who_dozes();
    operation.done = nullptr;
    const std::uint64_t offset = offset_of(operation.area);
    const std::vector<HostSeat> seats = seats_of(operation);
    driven_.emplace_back(std::move(operation), table_, offset, seats);
  }
  if (space) hooks_.space();
}

bool HostTeam::Impl::begin_again(const HostKind& kind, const HostCall& call) {
  const std::lock_guard lock(mutex_);
  if (space_wanted_) return false;
  for (auto runner = spent_.begin(); runner != spent_.end(); ++runner) {
    if (runner->operation().kind() != kind) continue;
    runner->look(driven_news_);  // what is over has nothing to tell
    if (!runner->can_begin_next()) continue;
    runner->begin_next(call);
    driven_.splice(driven_.end(), spent_, runner);
    note_who_dozes();
    return true;
  }
  return false;
}

void HostTeam::Impl::note_who_dozes() {
  may_doze_ = !thread_.joinable() || (parked_ && !has_use_for_bell());
}

std::optional<core::Status> HostTeam::Impl::drive(const std::atomic<bool>& wanted,
                                                  core::TimePoint until) {
  HostRunner& runner = driven_.front();
  CallerWatch watch = callers_watch_;
  while (!runner.ended()) {
    if (advance(runner)) {
      watch.restart();
      continue;
    }
    if (stopping_.load() || wanted.load()) return std::nullopt;
    if (!watch.wait() && !doze(runner, wanted, until)) return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  spent_.splice(spent_.end(), driven_);
  if (over_) called_.notify_all();
  return runner.outcome();
}

// Whether anything has happened.
bool HostTeam::Impl::advance(HostRunner& runner) {
  HostNews& news = driven_news_;
  runner.look(news);
  const std::optional<HostStep> step = runner.next();
  if (!step && news.empty()) return false;
  tell(news, false);
  news.clear();
  steps_.fetch_add(1, std::memory_order_relaxed);
  if (!step) return true;
  runner.run(*step);
  runner.ran(*step, news);
  tell(news, false);
  news.clear();
  return true;
}

// False: the operation is to be handed over.
bool HostTeam::Impl::doze(HostRunner& runner, const std::atomic<bool>& wanted,
                          core::TimePoint until) {
  const core::Duration left = until - core::Clock::now();
  if (!may_doze_ || left <= core::Duration::zero()) return false;
  HostBell& bell = table_.bell();
  const std::uint32_t since = bell.doze();
  if (stopping_.load() || wanted.load() || advance(runner)) {
    bell.stay_awake();
  } else {
    bell.sleep(since, left);
  }
  return true;
}

void HostTeam::Impl::hand_over(std::string title, std::function<void(core::Status)> done) {
  HostNews news;
  {
    const std::lock_guard lock(mutex_);
    HostRunner& runner = driven_.front();
    runner.tell_end(std::move(title), std::move(done));
    if (over_) {
      runner.give_up(*over_, news);
      spent_.splice(spent_.end(), driven_);
      called_.notify_all();
    } else {
      runners_.splice(runners_.end(), driven_);
      wake_thread();
    }
  }
  tell(news, false);
}

bool HostTeam::Impl::try_take() {
  const std::lock_guard lock(mutex_);
  if (over_ || taken_ || has_use_for_bell() || (thread_.joinable() && !parked_)) return false;
  (void)release_spent(kKept);
  taken_ = true;
  return true;
}

bool HostTeam::Impl::step() {
  std::unique_lock lock(mutex_);
  return work(lock);
}

void HostTeam::Impl::sleep(const std::atomic<bool>& wanted, core::Duration limit) {
  HostBell& bell = table_.bell();
  const std::uint32_t since = bell.doze();
  if (stopping_.load() || wanted.load() || step()) return bell.stay_awake();
  bell.sleep(since, limit);
}

// The thread ends in the caller's stead what a stop finds; but not while a step runs.
void HostTeam::Impl::give_place_back() {
  std::unique_lock lock(mutex_);
  if (over_) end_all(lock);
  for (auto runner = runners_.begin(); runner != runners_.end();) {
    const auto next = std::next(runner);
    if (runner->ended() && runner->outcome()) spent_.splice(spent_.end(), runners_, runner);
    runner = next;
  }
  taken_ = false;
  if (over_) called_.notify_all();
  if (has_use_for_bell()) wake_thread();
}

}  // namespace fasthorovod::ops
