#include "ops/deadline_queue.h"

#include <vector>

namespace fasthorovod::ops {

DeadlineQueue::Token DeadlineQueue::add(core::TimePoint when, std::function<void()> function) {
  std::unique_lock lock(mutex_);
  const Token token{when, ++last_id_};
  waiting_.emplace(token, std::move(function));
  const std::optional<core::TimePoint> ask = next_to_ask();
  lock.unlock();
  if (ask) arm_(*ask);
  return token;
}

void DeadlineQueue::remove(const Token& token) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(token);
}

void DeadlineQueue::expire(core::TimePoint now) {
  std::vector<std::function<void()>> due;
  std::unique_lock lock(mutex_);
  asked_.reset();
  while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
    due.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  const std::optional<core::TimePoint> ask = next_to_ask();
  lock.unlock();
  if (ask) arm_(*ask);
  for (const auto& function : due) function();
}

// Only a limit earlier than the one that was asked for needs another call.
std::optional<core::TimePoint> DeadlineQueue::next_to_ask() {
  if (waiting_.empty()) return std::nullopt;
  const core::TimePoint earliest = waiting_.begin()->first.first;
  if (asked_ && *asked_ <= earliest) return std::nullopt;
  asked_ = earliest;
  return earliest;
}

}  // namespace fasthorovod::ops
