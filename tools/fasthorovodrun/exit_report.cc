#include "tools/fasthorovodrun/exit_report.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "tools/fasthorovodrun/command.h"

namespace fasthorovod::tools {
namespace {

std::string what_happened(const Ending& ending, const std::string& command) {
  if (ending.exec_failure) {
    return fmt::format("cannot run '{}': {}", command,
                       std::system_category().message(ending.exec_failure->error));
  }
  if (!WIFSIGNALED(ending.status)) {
    return fmt::format("exited with code {}", WEXITSTATUS(ending.status));
  }
  const int signal = WTERMSIG(ending.status);
  std::string text = fmt::format("was killed by signal {} ({})", signal, signal_name(signal));
  if (signal == SIGKILL) {
    text += fmt::format("; if nobody sent it, the machine ran out of memory (peak use {} MiB)",
                        ending.peak_kilobytes / 1024);
  }
  return text;
}

}  // namespace

int exit_code(const Ending& ending) {
  constexpr int kSignalBase = 128;
  if (ending.exec_failure) {
    const int error = ending.exec_failure->error;
    return error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun;
  }
  if (WIFSIGNALED(ending.status)) return kSignalBase + WTERMSIG(ending.status);
  return WEXITSTATUS(ending.status);
}

std::string describe(const Place& place, const Ending& ending, const std::string& command) {
  return fmt::format("rank {} (host {}, pid {}) {}", place.rank, place.host, ending.pid,
                     what_happened(ending, command));
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : std::to_string(signal);
}

}  // namespace fasthorovod::tools
