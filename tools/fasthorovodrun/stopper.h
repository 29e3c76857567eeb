// Bringing everything down that lives below this process: SIGTERM at once, SIGKILL after a while,
// and an end to waiting for what cannot be killed. Thread: owner; the caller passes the time and
// reaps.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "tools/fasthorovodrun/process_tree.h"

namespace fasthorovod::tools {

class Stopper final {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kGrace{5};   // from SIGTERM to SIGKILL
  static constexpr std::chrono::seconds kGiveUp{2};  // from SIGKILL to leaving survivors alone

  /// `spared` and what is below them stay alive.
  explicit Stopper(std::vector<pid_t> spared) : spared_(std::move(spared)) {}

  /// Sends SIGTERM to everything, once; later calls do nothing.
  void begin(Time now);
  /// Sends SIGKILL from now on.
  void kill_now(Time now);
  /// To be called every few milliseconds while active: looks who is left, and kills when it is time
  /// to.
  void tick(Time now);

  [[nodiscard]] bool active() const { return phase_ != Phase::kIdle; }
  /// Nothing is left, or what is left cannot be killed.
  [[nodiscard]] bool over() const { return phase_ == Phase::kOver; }
  /// What could not be killed.
  [[nodiscard]] const std::vector<Process>& survivors() const { return left_; }

 private:
  enum class Phase { kIdle, kTerminating, kKilling, kOver };

  void look();
  void send(int signal) const;

  std::vector<pid_t> spared_;
  Phase phase_ = Phase::kIdle;
  Time deadline_;
  std::vector<Process> left_;
};

}  // namespace fasthorovod::tools
