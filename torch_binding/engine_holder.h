// The engine of this process, which both doors share: the Horovod door (init, shutdown) and the
// groups of torch.distributed (enter, leave). It starts with the first user and stops with the
// last; the next user gets a new one.
//
// Torch and Python are not known here. Thread: any. No call holds a lock while it runs the engine,
// so an operation may be submitted while another thread shuts down: it gets an error, not a crash.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "core/result.h"
#include "ops/engine.h"
#include "torch_binding/completion_thread.h"

namespace fasthorovod::torch_binding {

/// An engine, the log it writes to, which must live longer, and what groups need beside it.
struct RunningEngine {
  std::unique_ptr<core::Log> log;
  std::unique_ptr<ops::Engine> engine;
  std::unique_ptr<CompletionThread> completions;  // with the first group
  /// How torch.distributed numbers the ranks of the world; empty: as the world does.
  std::vector<std::int64_t> global_ranks;
  std::uint32_t groups_led = 0;  // ids given out here; guarded by the holder's enter()
};

class EngineHolder final {
 public:
  /// For the Horovod door. Reads the environment, meets the other ranks and starts the engine;
  /// shares the one that groups use. Harmless while it is open. kInvalidArgument: a setting is
  /// wrong. Other codes: the other ranks could not be met.
  core::Status init();

  /// Closes the Horovod door. Harmless while it is closed.
  void shutdown();

  /// Starts an engine for a group, given the settings of the environment and a log.
  using Start = std::function<core::Result<std::unique_ptr<ops::Engine>>(core::Config, core::Log&)>;

  /// What a group does about the engine that runs, if any: shares it, or starts one.
  struct Entry {
    bool share = false;
    core::Config config;  // of the engine to start
    Start start;
    std::vector<std::int64_t> global_ranks;
  };

  /// For a group. `decide` gets the running engine (or null) and whether the Horovod door uses it;
  /// an engine that is not shared is stopped before another starts. One entry at a time, and none
  /// during init() or shutdown().
  using Decide =
      std::function<core::Result<Entry>(const std::shared_ptr<RunningEngine>&, bool horovod_door)>;
  core::Result<std::shared_ptr<RunningEngine>> enter(const Decide& decide);

  /// The group that entered has gone.
  void leave(const std::shared_ptr<RunningEngine>& left);

  /// Stops the engine whoever uses it, before the process ends.
  void stop();

  /// The running engine, or null. Owners: the holder and the calls that are using it. A child made
  /// by fork has none: threads do not survive a fork.
  std::shared_ptr<RunningEngine> running() const;

  /// The running engine if the Horovod door is open, else null.
  std::shared_ptr<RunningEngine> running_for_horovod() const;

  /// Adds to the time that this process spent waiting for results.
  void add_blocked(std::chrono::nanoseconds time) { blocked_ += time.count(); }
  [[nodiscard]] std::chrono::nanoseconds blocked() const {
    return std::chrono::nanoseconds(blocked_.load());
  }

 private:
  void install(std::shared_ptr<RunningEngine> started);
  std::shared_ptr<RunningEngine> stop_running();

  std::mutex lifecycle_;      // who comes and goes, one at a time
  mutable std::mutex mutex_;  // the three fields below
  std::shared_ptr<RunningEngine> running_;
  bool horovod_door_ = false;             // open on running_
  pid_t owner_ = 0;                       // the process that started running_
  int groups_ = 0;                        // that use running_; guarded by lifecycle_
  std::uint32_t epoch_ = 0;               // worlds of the environment so far; by lifecycle_
  std::atomic<std::int64_t> blocked_{0};  // nanoseconds since the last init
};

/// A log that writes to standard error.
std::unique_ptr<core::Log> log_to_standard_error(core::LogLevel level, int rank);

}  // namespace fasthorovod::torch_binding
