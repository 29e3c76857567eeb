// What is behind host_team.h: the thread's part (host_team.cc) and the callers'
// (host_team_caller.cc). Private to these files.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/caller_watch.h"
#include "ops/executor.h"
#include "ops/host_areas.h"
#include "ops/host_runner.h"
#include "ops/host_team.h"
#include "ops/host_watch.h"

namespace fasthorovod::ops {

using core::Error;

// Callbacks and bells run after the lock is released.
class HostTeam::Impl {
 public:
  Impl(const core::World& world, std::vector<HostSeat> seats, transport::ArenaHeap& heap,
       std::size_t largest_area, HostHooks hooks)
      : hooks_(std::move(hooks)),
        seats_(std::move(seats)),
        own_(seat_of(world.rank)),
        table_(own_.arena),
        areas_(heap, largest_area, Executor::kWindow),
        watch_(seats_.size()),
        callers_watch_(seats_.size()) {}

  std::span<std::byte> reserve(std::size_t bytes, Door door, bool alone);
  void give_back(std::span<std::byte> area) { areas_.release(area); }
  void start(HostOperation operation);
  void begin(HostOperation operation);
  bool begin_again(const HostKind& kind, const HostCall& call);
  std::span<std::byte> driven_area() const { return driven_.front().operation().area; }
  std::optional<core::Status> drive(const std::atomic<bool>& wanted, core::TimePoint until);
  void hand_over(std::string title, std::function<void(core::Status)> done);
  void nudge() { table_.bell().ring(); }
  bool try_take();
  bool step();
  void sleep(const std::atomic<bool>& wanted, core::Duration limit);
  bool stopping() const { return stopping_.load(); }
  void give_place_back();
  void stop(const Error& error);
  std::optional<ChunkBoard::Wait> waiting() const;
  std::vector<int> awaited(const HostKey& key) const;
  std::uint64_t progress() const { return steps_.load(std::memory_order_relaxed); }

  /// Calls change(runner) when the operation is here, and wakes the thread.
  template <typename Change>
  void change(const HostKey& key, Change change) {
    {
      const std::lock_guard lock(mutex_);
      HostRunner* runner = find(key);
      if (runner == nullptr) return;
      change(*runner);
    }
    table_.bell().ring();
  }

 private:
  const HostSeat& seat_of(int rank) const;
  std::vector<HostSeat> seats_of(const HostOperation& operation) const;
  std::uint64_t offset_of(std::span<const std::byte> area) const;
  HostRunner* find(const HostKey& key);
  void run();
  bool work(std::unique_lock<std::mutex>& lock);
  std::optional<HostStep> choose(HostNews& news, HostRunner*& runner);
  bool release_what_is_over(std::list<HostRunner>& runners, std::size_t kept);
  bool release_spent(std::size_t kept);
  void note_who_dozes();
  void tell(const HostNews& news, bool space) const;
  void wake_thread();
  bool has_use_for_bell() const;
  void rest(std::unique_lock<std::mutex>& lock);
  void park(std::unique_lock<std::mutex>& lock);
  void end_all(std::unique_lock<std::mutex>& lock);
  bool advance(HostRunner& runner);
  bool doze(HostRunner& runner, const std::atomic<bool>& wanted, core::TimePoint until);

  const HostHooks hooks_;
  const std::vector<HostSeat> seats_;
  const HostSeat own_;
  HostTable table_;
  HostAreas areas_;
  const HostWatch watch_;
  const CallerWatch callers_watch_;
  std::atomic<std::uint64_t> steps_{0};  // partner: progress()

  mutable std::mutex mutex_;
  std::list<HostRunner> runners_;        // in the order of their start; removed by the thread alone
  std::optional<Error> over_;            // set by stop
  std::thread thread_;                   // from the first operation on
  std::condition_variable called_;       // the thread is needed; no caller is at work any more
  std::atomic<std::uint64_t> calls_{0};  // of wake_thread()
  bool parked_ = false;                  // the thread leaves the bell alone

  // What callers run. Who drives owns the one in driven_; the lock guards that it is there.
  std::list<HostRunner> driven_;
  HostNews driven_news_;               // kept for the memory that it has
  bool may_doze_ = false;              // the bell is its driver's
  std::atomic<bool> stopping_{false};  // with over_; partner: drive(), sleep()
  bool taken_ = false;                 // a caller is in the thread's place
  std::list<HostRunner> spent_;        // over, but mates may still look at them
  bool space_wanted_ = false;          // somebody found no room since spent_ were released
};

}  // namespace fasthorovod::ops
