#include "tools/fasthorovod-bench/line_process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "tools/exec_words.h"

namespace fasthorovod::tools {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

/// What the child gets in place of its standard input and output.
class ChildFiles {
 public:
  explicit ChildFiles(int socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDOUT_FILENO);
  }
  ~ChildFiles() { posix_spawn_file_actions_destroy(&actions_); }
  ChildFiles(const ChildFiles&) = delete;
  ChildFiles& operator=(const ChildFiles&) = delete;

  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

core::Result<std::unique_ptr<LineProcess>> LineProcess::start(
    const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return core::system_error("cannot make a pair of sockets", errno);
  }
  transport::FileDescriptor ours(ends[0]);
  const transport::FileDescriptor theirs(ends[1]);
  const ChildFiles files(theirs.get());
  const std::vector<char*> arguments = pointers(command);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, arguments[0], files.get(), nullptr, arguments.data(), environ);
  if (error != 0) return core::system_error(fmt::format("cannot start {}", command[0]), error);
  return std::unique_ptr<LineProcess>(new LineProcess(command[0], std::move(ours), pid));
}

LineProcess::LineProcess(std::string program, transport::FileDescriptor socket, pid_t pid)
    : program_(std::move(program)), socket_(std::move(socket)), pid_(pid) {}

LineProcess::~LineProcess() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

core::Status LineProcess::tell(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ended();
    sent += static_cast<std::size_t>(count);
  }
  return {};
}

core::Result<std::string> LineProcess::hear() {
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = heard_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    searched = heard_.size();
    heard_.resize(searched + kReadBytes);
    const ssize_t count = recv(socket_.get(), heard_.data() + searched, kReadBytes, 0);
    heard_.resize(searched + static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count == 0 || (count < 0 && errno != EINTR)) return ended();
  }
}

core::Error LineProcess::ended() const {
  return {core::ErrorCode::kUnavailable, fmt::format("{} has ended", program_)};
}

}  // namespace fasthorovod::tools
