// The keeper: a process that does nothing but outlive the launcher, and then ends what the launcher
// left behind.
//
// It holds the reading end of a pipe whose writing end only the launcher has. When the launcher
// dies, however it does, the pipe ends, and the keeper kills every process of the sessions it was
// told of and every process that carries the job's id in its environment, until none is left. It
// sits in a session of its own, holds no other descriptor and ignores the signals a terminal sends.
// Thread: owner.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

class Keeper final {
 public:
  /// Forks the keeper. To be called while this process has one thread. `job_entry` is
  /// "FASTHOROVOD_JOB=<id>".
  static core::Result<Keeper> start(const std::string& job_entry);

  Keeper(Keeper&& other) noexcept;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  Keeper& operator=(Keeper&&) = delete;
  /// Dismisses the keeper, which then kills nothing, and waits for it.
  ~Keeper();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// `session` is a worker's: its processes end with the launcher.
  void add(pid_t session);
  /// Nothing of `session` is left; its number may come to mean something else.
  void remove(pid_t session);

 private:
  Keeper(pid_t pid, transport::FileDescriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  transport::FileDescriptor pipe_;
};

}  // namespace fasthorovod::tools
