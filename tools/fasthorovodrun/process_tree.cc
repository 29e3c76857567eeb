#include "tools/fasthorovodrun/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "transport/file_descriptor.h"

namespace fasthorovod::tools {
namespace {

constexpr std::size_t kMostBytes = 4U << 20U;  // no environment is larger
constexpr unsigned kExiting = 0x4;             // PF_EXITING of Linux

std::string read_file(const std::string& path) {
  const transport::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece{};
  while (file.valid() && text.size() < kMostBytes) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// Cuts the next field, up to a blank, off `text`.
std::string_view next_field(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

template <typename Number>
bool read_number(std::string_view field, Number& out) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), out);
  return error == std::errc{} && end == field.data() + field.size();
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

bool parse_process(std::string_view stat_text, Process& out) {
  // The name stands in brackets and may hold anything, brackets and blanks too.
  const std::size_t name_end = stat_text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat_text.size()) return false;
  std::string_view head = stat_text.substr(0, name_end);
  std::string_view rest = stat_text.substr(name_end + 2);
  const std::string_view state = next_field(rest);
  if (state.size() != 1) return false;
  out.state = state.front();
  pid_t terminal = 0;
  pid_t terminal_group = 0;
  unsigned flags = 0;
  const bool understood =
      read_number(next_field(head), out.pid) && read_number(next_field(rest), out.parent) &&
      read_number(next_field(rest), out.group) && read_number(next_field(rest), out.session) &&
      read_number(next_field(rest), terminal) && read_number(next_field(rest), terminal_group) &&
      read_number(next_field(rest), flags);
  out.exiting = (flags & kExiting) != 0;
  return understood;
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc"));
  if (!directory) return processes;
  while (const dirent* entry = readdir(directory.get())) {
    pid_t pid = 0;
    Process process;
    if (!read_number(entry->d_name, pid)) continue;
    if (parse_process(read_file(fmt::format("/proc/{}/stat", pid)), process)) {
      processes.push_back(process);
    }
  }
  return processes;
}

std::vector<Process> descendants(const std::vector<Process>& processes, pid_t ancestor,
                                 const std::vector<pid_t>& spared) {
  std::unordered_map<pid_t, std::vector<const Process*>> children;
  for (const Process& process : processes) children[process.parent].push_back(&process);
  std::vector<Process> found;
  std::unordered_set<pid_t> seen(spared.begin(), spared.end());
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const Process* child : children[parent]) {
      if (!seen.insert(child->pid).second) continue;
      open.push_back(child->pid);
      if (child->state != 'Z' && child->state != 'X') found.push_back(*child);
    }
  }
  return found;
}

bool has_environment_entry(pid_t pid, std::string_view entry) {
  const std::string all = read_file(fmt::format("/proc/{}/environ", pid));
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == entry) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace fasthorovod::tools
