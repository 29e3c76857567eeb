#include "tools/fasthorovodrun/command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace fasthorovod::tools {
namespace {

/// 0 when the file can be executed, otherwise an errno value.
int problem_with(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::vector<std::string> candidates(const std::string& name, std::string_view search_path) {
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> paths;
  std::size_t begin = 0;
  while (begin <= search_path.size()) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string_view folder = search_path.substr(begin, end - begin);
    paths.push_back(fmt::format("{}/{}", folder.empty() ? "." : folder, name));
    begin = end + 1;
  }
  return paths;
}

bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }

bool is_plain(char c) {
  constexpr std::string_view kHarmless = "%+,-./:=@_";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kHarmless.find(c) != std::string_view::npos;
}

}  // namespace

std::optional<Refusal> check_command(const std::string& name, std::string_view search_path) {
  std::optional<Refusal> refusal;
  for (const std::string& path : candidates(name, search_path)) {
    const int problem = problem_with(path);
    if (problem == 0) return std::nullopt;
    if (!refusal && !is_missing(problem)) {
      refusal = Refusal{kCannotRun, fmt::format("cannot run '{}': {}", path,
                                                std::system_category().message(problem))};
    }
  }
  if (refusal) return refusal;
  return Refusal{kNotFound, fmt::format("command '{}' was not found", name)};
}

std::string quoted(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command) {
    if (!text.empty()) text += ' ';
    if (!argument.empty() && std::ranges::all_of(argument, is_plain)) {
      text += argument;
      continue;
    }
    text += '\'';
    for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace fasthorovod::tools
