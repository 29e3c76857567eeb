#include "tools/fasthorovodrun/worker.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tools/exec_words.h"

namespace fasthorovod::tools {
namespace {

struct Pipe {
  transport::FileDescriptor reading;
  transport::FileDescriptor writing;
};

core::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return core::system_error("cannot make a pipe", errno);
  return Pipe{transport::FileDescriptor(ends[0]), transport::FileDescriptor(ends[1])};
}

/// Everything a child needs, ready before the fork: between fork and exec nothing may be allocated.
struct ChildPlan {
  pid_t launcher;
  char* const* arguments;
  char* const* environment;
  const OriginalProcess* original;
  int standard_input;
  int standard_output;
  int standard_error;
  int gate;
  int failures;
};

void restore_process(const OriginalProcess& original) {
  sigaction(SIGPIPE, &original.on_broken_pipe, nullptr);
  setrlimit(RLIMIT_NOFILE, &original.files);
  sigprocmask(SIG_SETMASK, &original.mask, nullptr);
}

bool wait_at_gate(int gate) {
  char go = 0;
  ssize_t got = 0;
  do {
    got = read(gate, &go, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

[[noreturn]] void become_command(const ChildPlan& plan) {
  constexpr int kNeverRan = 125;
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.launcher || !wait_at_gate(plan.gate)) _exit(kNeverRan);
  dup2(plan.standard_input, STDIN_FILENO);
  dup2(plan.standard_output, STDOUT_FILENO);
  dup2(plan.standard_error, STDERR_FILENO);
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  restore_process(*plan.original);
  execvpe(plan.arguments[0], plan.arguments, plan.environment);
  const ExecFailure failure{getpid(), errno};
  (void)!write(plan.failures, &failure, sizeof failure);
  _exit(kNeverRan);
}

}  // namespace

core::Result<WorkerStarter> WorkerStarter::create(const OriginalProcess& original) {
  WorkerStarter starter(original);
  core::Result<Pipe> gate = make_pipe();
  core::Result<Pipe> failures = make_pipe();
  if (!gate) return std::move(gate).error();
  if (!failures) return std::move(failures).error();
  fcntl(failures->reading.get(), F_SETFL, O_NONBLOCK);
  starter.nothing_ = transport::FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!starter.nothing_.valid()) return core::system_error("cannot open /dev/null", errno);
  starter.gate_in_ = std::move(gate->writing);
  starter.gate_out_ = std::move(gate->reading);
  starter.failures_in_ = std::move(failures->writing);
  starter.failures_out_ = std::move(failures->reading);
  return starter;
}

core::Result<WorkerProcess> WorkerStarter::start(const std::vector<std::string>& command,
                                                 const std::vector<std::string>& environment) {
  core::Result<Pipe> output = make_pipe();
  core::Result<Pipe> errors = make_pipe();
  if (!output) return std::move(output).error();
  if (!errors) return std::move(errors).error();
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  const ChildPlan plan{.launcher = getpid(),
                       .arguments = arguments.data(),
                       .environment = variables.data(),
                       .original = &original_,
                       .standard_input = nothing_.get(),
                       .standard_output = output->writing.get(),
                       .standard_error = errors->writing.get(),
                       .gate = gate_out_.get(),
                       .failures = failures_in_.get()};
  const pid_t pid = fork();
  if (pid < 0) return core::system_error("cannot start a process", errno);
  if (pid == 0) {
    // The gate must end for this child when the launcher goes.
    close(gate_in_.get());
    become_command(plan);
  }
  fcntl(output->reading.get(), F_SETFL, O_NONBLOCK);
  fcntl(errors->reading.get(), F_SETFL, O_NONBLOCK);
  return WorkerProcess{
      .pid = pid,
      .exit_event = transport::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
      .standard_output = std::move(output->reading),
      .standard_error = std::move(errors->reading)};
}

void WorkerStarter::open_gate(int count) {
  const std::string go(static_cast<std::size_t>(count), '.');
  (void)!write(gate_in_.get(), go.data(), go.size());
  gate_in_ = transport::FileDescriptor();
}

std::optional<ExecFailure> WorkerStarter::next_failure() {
  ExecFailure failure;
  if (read(failures_out_.get(), &failure, sizeof failure) != sizeof failure) return std::nullopt;
  return failure;
}

}  // namespace fasthorovod::tools
