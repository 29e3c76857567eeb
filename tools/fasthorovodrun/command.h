// Whether a command can be started, found out before anything is, and how to write it down for
// people.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fasthorovod::tools {

/// Exit codes of shells for commands that do not exist, and for those that exist but cannot run.
inline constexpr int kNotFound = 127;
inline constexpr int kCannotRun = 126;

struct Refusal {
  int exit_code = 0;
  std::string sentence;
};

/// Looks for `name` as execvp does: along `search_path` unless it contains a slash. Nothing when it
/// can be started.
std::optional<Refusal> check_command(const std::string& name, std::string_view search_path);

/// The command as one could type it into a shell.
std::string quoted(const std::vector<std::string>& command);

}  // namespace fasthorovod::tools
