// One thread that runs what is posted to it, in order. It sleeps while there is nothing to do.
//
// Another thread may take its turn while nothing is posted or under way: then nothing runs until it
// gives the turn back, and the worker's thread sleeps. So what belongs to the worker may be touched
// without a hand-over to it.
//
// Thread: post from any; stop from the owner, once, which runs what was posted before and joins.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace fasthorovod::ops {

class Worker final {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// After stop() the function is dropped, unless it is the worker itself, or who has its turn,
  /// that posts: what they still do may end only with what they post.
  void post(std::function<void()> function);
  void stop();

  /// Takes the turn for the calling thread, which gives it back soon. False: it is not to be had.
  [[nodiscard]] bool try_take();
  /// Runs what was posted since; by who has the turn.
  void serve();
  /// What is posted from now on, or was since, runs on the worker's thread again.
  void give_back();

  /// True while something is posted: who has the turn should serve it or give the turn back.
  [[nodiscard]] const std::atomic<bool>& wanted() const { return wanted_; }
  /// Called when another thread posts than the one that has taken the turn, without a lock; must
  /// not block. Before the first try_take().
  void on_wanted(std::function<void()> call) { on_wanted_ = std::move(call); }

 private:
  void run();
  void run_next(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool is_own_thread() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::atomic<bool> wanted_{false};  // the queue is not empty; written under the lock
  bool stopping_ = false;
  bool busy_ = false;       // its thread runs a function
  std::thread::id driver_;  // who has the turn
  std::function<void()> on_wanted_ = [] {};
  std::thread thread_;  // last: it uses the others
};

}  // namespace fasthorovod::ops
