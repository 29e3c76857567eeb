#include "tools/fasthorovod-bench/others.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace fasthorovod::tools {
namespace {

constexpr int kColumns = 8;  // of /proc/stat; those after them are parts of these
constexpr int kIdle = 3;
constexpr int kWaiting = 4;

// Of everybody since the machine started, stolen time as well.
std::optional<double> busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  if (!(file >> word)) return std::nullopt;
  double ticks = 0;
  for (int column = 0; column < kColumns; ++column) {
    double value = 0;
    if (!(file >> value)) return std::nullopt;
    if (column != kIdle && column != kWaiting) ticks += value;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double own_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Others::Others() : start_(core::Clock::now()), all_(busy_seconds()), own_(own_seconds()) {}

std::optional<double> Others::share() const {
  const auto all = busy_seconds();
  if (!all_ || !all) return std::nullopt;
  const double elapsed = std::chrono::duration<double>(core::Clock::now() - start_).count();
  const double others = *all - *all_ - (own_seconds() - own_);
  const double there = elapsed * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::clamp(others / there, 0.0, 1.0);
}

}  // namespace fasthorovod::tools
