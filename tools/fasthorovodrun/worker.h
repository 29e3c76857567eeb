// Starting the processes of the ranks.
//
// A starting worker first waits at a gate, so that all of them are known before the first runs;
// when the launcher dies at that point the gate ends and the worker leaves. Each is the leader of a
// session of its own and is killed when the launcher dies. Thread: owner; workers are tied to the
// thread that starts them.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

/// What the launcher changed of its own process and workers get back.
struct OriginalProcess {
  sigset_t mask{};
  struct sigaction on_broken_pipe {};
  rlimit files{};
};

struct WorkerProcess {
  pid_t pid = 0;
  transport::FileDescriptor exit_event;  // a pidfd; invalid where the kernel refuses it
  transport::FileDescriptor standard_output;
  transport::FileDescriptor standard_error;
};

/// Why a worker could not become its command.
struct ExecFailure {
  pid_t pid = 0;
  int error = 0;  // errno
};

class WorkerStarter final {
 public:
  static core::Result<WorkerStarter> create(const OriginalProcess& original);

  /// Forks a worker, which waits at the gate. `environment` holds "NAME=value" entries.
  core::Result<WorkerProcess> start(const std::vector<std::string>& command,
                                    const std::vector<std::string>& environment);
  /// Lets `count` workers go.
  void open_gate(int count);
  /// The next failure that a worker reported, if there is one.
  std::optional<ExecFailure> next_failure();

 private:
  explicit WorkerStarter(const OriginalProcess& original) : original_(original) {}

  OriginalProcess original_;
  transport::FileDescriptor nothing_;  // what workers read
  transport::FileDescriptor gate_in_;
  transport::FileDescriptor gate_out_;
  transport::FileDescriptor failures_in_;
  transport::FileDescriptor failures_out_;
};

}  // namespace fasthorovod::tools
