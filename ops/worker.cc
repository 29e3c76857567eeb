#include "ops/worker.h"

#include <utility>

namespace fasthorovod::ops {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() { stop(); }

void Worker::post(std::function<void()> function) {
  std::thread::id driver;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ && !is_own_thread()) return;
    queue_.push_back(std::move(function));
    wanted_.store(true);
    driver = driver_;
  }
  if (driver == std::thread::id()) return changed_.notify_one();
  if (driver != std::this_thread::get_id()) on_wanted_();
}

bool Worker::is_own_thread() const {
  const std::thread::id self = std::this_thread::get_id();
  return self == thread_.get_id() || self == driver_;
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool Worker::try_take() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || stopping_ || busy_ || !queue_.empty() || driver_ != std::thread::id()) return false;
  driver_ = std::this_thread::get_id();
  return true;
}

void Worker::serve() {
  std::unique_lock lock(mutex_);
  while (!queue_.empty()) run_next(lock);
}

// Lets go of the lock meanwhile.
void Worker::run_next(std::unique_lock<std::mutex>& lock) {
  const std::function<void()> function = std::move(queue_.front());
  queue_.pop_front();
  wanted_.store(!queue_.empty());
  lock.unlock();
  function();
  lock.lock();
}

void Worker::give_back() {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    driver_ = {};
    wakes = stopping_ || !queue_.empty();
  }
  if (wakes) changed_.notify_one();
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(
        lock, [this] { return driver_ == std::thread::id() && (stopping_ || !queue_.empty()); });
    if (queue_.empty()) return;
    busy_ = true;
    run_next(lock);
    busy_ = false;
  }
}

}  // namespace fasthorovod::ops
