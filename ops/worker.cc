#include "ops/worker.h"

#include <utility>

namespace fasthorovod::ops {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() { stop(); }

void Worker::post(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ && std::this_thread::get_id() != thread_.get_id()) return;
    queue_.push_back(std::move(function));
  }
  changed_.notify_one();
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    function();
    lock.lock();
  }
}

}  // namespace fasthorovod::ops
