// The thread on which torch's futures complete. Their callbacks may be Python: they may take the
// interpreter lock, block, and submit further operations, so they never run on a thread of the
// engine.
//
// Thread: any.
#pragma once

#include <functional>
#include <memory>

namespace fasthorovod::torch_binding {

class CompletionThread final {
 public:
  CompletionThread();
  /// As stop().
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  /// Runs `task` after those before it. After stop() it runs at once, on the caller's thread.
  void post(std::function<void()> task);

  /// Runs what was posted, then ends the thread. From the thread itself: ends it after this task.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;  // owners: this and the thread, which may outlive it
};

}  // namespace fasthorovod::torch_binding
