#include "torch_binding/completion_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace fasthorovod::torch_binding {

struct CompletionThread::State {
  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !tasks.empty(); });
      if (tasks.empty()) return;
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it held goes without the lock, too
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool stopping = false;
  std::thread thread;
};

CompletionThread::CompletionThread() : state_(std::make_shared<State>()) {
  state_->thread = std::thread([state = state_] { state->run(); });
}

CompletionThread::~CompletionThread() { stop(); }

void CompletionThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->stopping) {
      state_->tasks.push_back(std::move(task));
      state_->changed.notify_one();
      return;
    }
  }
  task();
}

void CompletionThread::stop() {
  std::thread ending;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    ending.swap(state_->thread);
  }
  state_->changed.notify_one();
  if (!ending.joinable()) return;
  if (ending.get_id() == std::this_thread::get_id()) {
    ending.detach();
  } else {
    ending.join();
  }
}

}  // namespace fasthorovod::torch_binding
