// A handle on one submitted operation. It completes exactly once, from the engine's worker, with a
// Status. Copies share the operation. Thread: any; waiting from several threads is fine, and needs
// no lock of the caller's language.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::ops {

class Handle final {
 public:
  /// A handle that waits for complete().
  static Handle pending();

  [[nodiscard]] bool done() const;

  /// Blocks until done. The Status of the operation, as often as asked.
  [[nodiscard]] core::Status wait() const;

  /// Blocks until done or for `limit`. False: not done.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) const;

  /// Calls `callback` once: from the completing thread, or at once when done. It must not block,
  /// and is dropped after the call. One a handle; no lock is held.
  void on_done(std::function<void()> callback) const;

  /// join() only, after success: the rank that joined last.
  [[nodiscard]] int last_joined() const;

  /// A new process set only, after success: its number.
  [[nodiscard]] core::GroupId group() const;

  /// receive() only, after success: the sender's position in the group.
  [[nodiscard]] int source() const;

  /// Completes the operation; only its engine calls this, once. `answer`: what last_joined() or
  /// group() returns.
  void complete(core::Status status, int answer = -1, int source = -1) const;

 private:
  struct State;
  explicit Handle(std::shared_ptr<State> state);  // owners: the caller's copies and the engine
  std::shared_ptr<State> state_;
};

}  // namespace fasthorovod::ops
