#include "tools/fasthorovod-bench/processor_time.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>

namespace fasthorovod::tools {
namespace {

using Children = std::multimap<pid_t, pid_t>;

std::optional<double> seconds_of(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Nothing: it has ended.
std::optional<pid_t> parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  // "PID (name) state parent ...", and a name may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return std::nullopt;
  pid_t parent = 0;
  const char* begin = text.data() + name_end + 4;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), parent);
  return error == std::errc() ? std::optional(parent) : std::nullopt;
}

Children children_of_all() {
  Children children;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (const auto parent = parent_of(name)) children.emplace(*parent, pid);
  }
  return children;
}

std::vector<pid_t> family_of(pid_t root) {
  const Children children = children_of_all();
  std::vector<pid_t> family{root};
  for (std::size_t at = 0; at < family.size(); ++at) {
    const auto [first, last] = children.equal_range(family[at]);
    for (auto child = first; child != last; ++child) family.push_back(child->second);
  }
  return family;
}

}  // namespace

ProcessorTime::ProcessorTime() {
  for (const pid_t pid : family_of(::getpid())) {
    clockid_t clock{};
    if (::clock_getcpuclockid(pid, &clock) == 0) processes_.push_back({clock});
  }
  restart();
}

void ProcessorTime::restart() {
  for (Process& process : processes_) process.before = seconds_of(process.clock).value_or(0);
}

double ProcessorTime::seconds() const {
  double sum = 0;
  for (const Process& process : processes_) {
    const std::optional<double> now = seconds_of(process.clock);
    if (now) sum += *now - process.before;
  }
  return sum;
}

}  // namespace fasthorovod::tools
