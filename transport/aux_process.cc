#include "transport/aux_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/build_id.h"
#include "transport/aux_worker.h"
#include "transport/fork_guard.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::chrono::milliseconds kBindLimit{2'000};

// The environment of the rank without our settings, which name a secret and mean nothing here; but
// for the one about how to reckon.
std::vector<char*> environment_for_auxiliary() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool is_ours = text.starts_with("FASTHOROVOD_") || text.starts_with("HOROVOD_");
    if (!is_ours || text.starts_with("FASTHOROVOD_SIMD=")) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// What the forked child runs: no lock, no allocation. Only its socket and the standard streams go
// through exec; standard input is closed to it.
struct Child {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int socket;
  pid_t parent;

  [[noreturn]] void become() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before the line above
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDIN_FILENO);
    if (socket == kAuxSocket) {
      ::fcntl(kAuxSocket, F_SETFD, 0);
    } else {
      ::dup2(socket, kAuxSocket);
    }
    ::close_range(kAuxSocket + 1, ~0U, 0);
    ::execve(program, arguments, environment);
    const AuxMessage failed{.kind = AuxMessage::Kind::kCannotStart, .number = errno};
    (void)!::send(kAuxSocket, &failed, sizeof failed, MSG_NOSIGNAL);
    ::_exit(127);
  }
};

// glibc 2.36 declares these two for C only.
FileDescriptor pidfd_of(pid_t pid) {
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}
void send_signal(const FileDescriptor& pidfd, int signal) {
  (void)::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

std::string describe(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return fmt::format("ended with exit status {}", end.si_status);
  return fmt::format("was killed by signal {}", end.si_status);
}

}  // namespace

core::Result<AuxProcessPtr> AuxProcess::start(const std::string& program) {
  auto sockets = AuxSocket::pair();
  if (!sockets) return std::move(sockets).error();
  drop_on_fork(sockets->first);
  std::string name = "fasthorovod-aux";
  std::string option(kAuxOption);
  const std::vector<char*> arguments{name.data(), option.data(), nullptr};
  const std::vector<char*> environment = environment_for_auxiliary();
  const Child child{program.c_str(), arguments.data(), environment.data(), sockets->second.get(),
                    ::getpid()};
  const pid_t pid = ::fork();
  if (pid == 0) child.become();
  if (pid < 0) return core::system_error("starting an auxiliary", errno);
  FileDescriptor pidfd = pidfd_of(pid);
  if (!pidfd.valid()) {
    Error error = core::system_error("watching an auxiliary", errno);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return error;
  }
  drop_on_fork(pidfd);
  return std::make_shared<AuxProcess>(pid, std::move(pidfd), std::move(sockets->first));
}

AuxProcess::AuxProcess(pid_t pid, FileDescriptor pidfd, FileDescriptor socket)
    : pid_(pid), pidfd_(std::move(pidfd)), socket_(std::move(socket)) {}

core::Status AuxProcess::await_hello(const std::string& program,
                                     std::chrono::milliseconds limit) const {
  const auto fail = [&program](const std::string& why) {
    return Error{ErrorCode::kUnavailable, fmt::format("the auxiliary program {} {}", program, why)};
  };
  auto hello = socket_.receive(limit);
  if (!hello) return fail(hello.error().message);
  if (!*hello) return fail("did not start");
  const AuxMessage& message = (*hello)->message;
  if (message.kind == AuxMessage::Kind::kCannotStart) {
    return fail("could not be started: " + std::generic_category().message(message.number));
  }
  const std::string_view build(message.build.data(), message.build.size());
  if (message.kind != AuxMessage::Kind::kHello || build != core::build_id()) {
    return fail("is of another build than this module; install both again");
  }
  return {};
}

core::Status AuxProcess::bind(std::span<const int> processors) {
  if (processors.empty() && !bound_) return {};
  AuxMessage message{.kind = AuxMessage::Kind::kBind};
  for (const int id : processors) {
    message.processors[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
  }
  if (core::Status sent = socket_.send(message); !sent) return sent;
  const auto answer = socket_.receive(kBindLimit);
  if (!answer) return answer.error();
  if (!*answer || (*answer)->message.kind != AuxMessage::Kind::kBound) {
    return Error{ErrorCode::kUnavailable, "an auxiliary does not answer"};
  }
  if (const int number = (*answer)->message.number; number != 0) {
    return core::system_error("binding an auxiliary to a core", number);
  }
  bound_ = !processors.empty();
  return {};
}

// By descriptor, so that neither a number that was given to another process nor a forked child of
// the rank, whose copy of the descriptor leads nowhere, can hit a wrong process.
void AuxProcess::kill() const { send_signal(pidfd_, SIGKILL); }

void AuxProcess::await_end(std::chrono::milliseconds limit) const {
  pollfd watched{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  while (::poll(&watched, 1, static_cast<int>(limit.count())) < 0 && errno == EINTR) {
  }
}

void AuxProcess::on_end(std::function<void(const std::string& how)> hear) {
  const std::lock_guard lock(mutex_);
  hear_ = std::move(hear);
  if (how_ && hear_) hear_(*how_);
}

bool AuxProcess::ended() const {
  const std::lock_guard lock(mutex_);
  return how_.has_value();
}

void AuxProcess::reap() {
  siginfo_t end{};
  // It fails when the program waits for all its children itself, and took the status.
  const bool known = ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &end, WEXITED) == 0;
  const std::lock_guard lock(mutex_);
  how_ = known ? describe(end) : "ended";
  if (hear_) hear_(*how_);
}

}  // namespace fasthorovod::transport
