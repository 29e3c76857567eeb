#include "tools/fasthorovodrun/stopper.h"

#include <unistd.h>

#include <csignal>
#include <set>

namespace fasthorovod::tools {

void Stopper::begin(Time now) {
  if (phase_ != Phase::kIdle) return;
  phase_ = Phase::kTerminating;
  deadline_ = now + kGrace;
  look();
  send(SIGTERM);
  send(SIGCONT);  // what is stopped could not look at the other one
}

void Stopper::kill_now(Time now) {
  if (phase_ == Phase::kKilling || phase_ == Phase::kOver) return;
  phase_ = Phase::kKilling;
  deadline_ = now + kGiveUp;
  look();
  send(SIGKILL);
}

void Stopper::tick(Time now) {
  if (phase_ == Phase::kIdle || phase_ == Phase::kOver) return;
  look();
  const bool late = now >= deadline_;
  if (left_.empty() || (late && phase_ == Phase::kKilling)) {
    phase_ = Phase::kOver;
  } else if (phase_ == Phase::kKilling) {
    send(SIGKILL);  // again: a process may have forked between looking and killing
  } else if (late) {
    kill_now(now);
  }
}

void Stopper::look() { left_ = descendants(all_processes(), getpid(), spared_); }

void Stopper::send(int signal) const {
  // Whole groups, so that no child is missed and none gets the signal twice.
  std::set<pid_t> groups;
  for (const Process& process : left_) {
    if (process.group == getpgrp()) {
      kill(process.pid, signal);
    } else if (groups.insert(process.group).second) {
      kill(-process.group, signal);
    }
  }
}

}  // namespace fasthorovod::tools
