#include "tools/fasthorovodrun/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "tools/fasthorovodrun/process_tree.h"

namespace fasthorovod::tools {
namespace {

enum class Kind : int { kAdd, kRemove, kDismiss };

struct Message {
  Kind kind;
  pid_t session;
};

void send(int pipe, const Message& message) {
  while (write(pipe, &message, sizeof message) < 0 && errno == EINTR) {
  }
}

void leave_everything_of_the_launcher(int pipe) {
  setsid();
  prctl(PR_SET_NAME, "fasthvd-keeper");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    (void)std::signal(signal, SIG_IGN);
  }
  dup2(pipe, STDIN_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
}

/// Follows the launcher's messages to the end of the pipe. True when the keeper was dismissed.
bool follow(std::set<pid_t>& sessions) {
  Message message{};
  while (true) {
    const ssize_t got = read(STDIN_FILENO, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof message) return false;
    if (message.kind == Kind::kDismiss) return true;
    if (message.kind == Kind::kAdd) sessions.insert(message.session);
    if (message.kind == Kind::kRemove) sessions.erase(message.session);
  }
}

/// Kills what is left of the job once; returns how many processes that were.
int kill_round(const std::set<pid_t>& sessions, const std::string& job_entry) {
  int killed = 0;
  for (const Process& process : all_processes()) {
    if (process.pid == getpid() || process.state == 'Z') continue;
    if (sessions.contains(process.session) || has_environment_entry(process.pid, job_entry)) {
      kill(process.pid, SIGKILL);
      ++killed;
    }
  }
  return killed;
}

[[noreturn]] void keep(int pipe, const std::string& job_entry) {
  using std::chrono_literals::operator""ms;
  constexpr int kRounds = 100;
  leave_everything_of_the_launcher(pipe);
  std::set<pid_t> sessions;
  if (!follow(sessions)) {
    for (int round = 0; round < kRounds && kill_round(sessions, job_entry) > 0; ++round) {
      std::this_thread::sleep_for(20ms);
    }
  }
  _exit(0);
}

}  // namespace

core::Result<Keeper> Keeper::start(const std::string& job_entry) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return core::system_error("cannot make a pipe", errno);
  transport::FileDescriptor reading(ends[0]);
  transport::FileDescriptor writing(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return core::system_error("cannot start the keeper process", errno);
  if (pid == 0) keep(reading.get(), job_entry);
  return Keeper(pid, std::move(writing));
}

Keeper::Keeper(Keeper&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pipe_(std::move(other.pipe_)) {}

Keeper::~Keeper() {
  if (pid_ == 0) return;
  send(pipe_.get(), {Kind::kDismiss, 0});
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Keeper::add(pid_t session) { send(pipe_.get(), {Kind::kAdd, session}); }

void Keeper::remove(pid_t session) { send(pipe_.get(), {Kind::kRemove, session}); }

}  // namespace fasthorovod::tools
