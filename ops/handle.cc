#include "ops/handle.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace fasthorovod::ops {

struct Handle::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<core::Status> status;
  int answer = -1;
  int source = -1;
  std::function<void()> on_done;
};

Handle::Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}

Handle Handle::pending() { return Handle(std::make_shared<State>()); }

bool Handle::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status.has_value();
}

core::Status Handle::wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->status.has_value(); });
  return *state_->status;
}

bool Handle::wait_for(std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [this] { return state_->status.has_value(); });
}

int Handle::last_joined() const {
  const std::lock_guard lock(state_->mutex);
  return state_->answer;
}

core::GroupId Handle::group() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<core::GroupId>(state_->answer);
}

int Handle::source() const {
  const std::lock_guard lock(state_->mutex);
  return state_->source;
}

void Handle::on_done(std::function<void()> callback) const {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->status.has_value()) {
      state_->on_done = std::move(callback);
      return;
    }
  }
  callback();
}

void Handle::complete(core::Status status, int answer, int source) const {
  std::function<void()> callback;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->status.has_value()) return;  // exactly once: the first outcome stands
    state_->status = std::move(status);
    state_->answer = answer;
    state_->source = source;
    callback.swap(state_->on_done);
    state_->changed.notify_all();
  }
  if (callback) callback();
}

}  // namespace fasthorovod::ops
