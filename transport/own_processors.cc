#include "transport/own_processors.h"

#include <sched.h>
#include <sys/types.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/processor_list.h"

namespace fasthorovod::transport {
namespace {

static_assert(CPU_SETSIZE == core::kMostProcessors);

std::vector<int> processors_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return processors;
  for (int id = 0; id < core::kMostProcessors; ++id) {
    if (CPU_ISSET(id, &set)) processors.push_back(id);
  }
  return processors;
}

}  // namespace

std::vector<int> processors_of_thread() { return processors_of(0); }

int bind_thread(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int id : processors) {
    if (id < 0 || id >= core::kMostProcessors) return EINVAL;
    CPU_SET(id, &set);
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : errno;
}

// A program may bind its threads one by one, and then none may use all.
OwnProcessors own_processors() {
  std::vector<std::vector<int>> threads{processors_of_thread()};
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), thread);
    if (error == std::errc()) threads.push_back(processors_of(thread));
  }
  std::set<int> all;
  for (const auto& processors : threads) all.insert(processors.begin(), processors.end());
  OwnProcessors own{.usable = {all.begin(), all.end()}, .bound = {}};
  for (const auto& processors : threads) {
    if (processors.size() < all.size()) own.bound.insert(processors.begin(), processors.end());
  }
  return own;
}

}  // namespace fasthorovod::transport
