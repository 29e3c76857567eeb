#include "transport/descriptor_limit.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "core/lane_plan.h"

namespace fasthorovod::transport {
namespace {

constexpr std::size_t kAlone = 16;
constexpr std::size_t kAmongOthers = 52;
constexpr std::size_t kOfALane = 4;
constexpr std::size_t kOfAnAuxiliary = 4;  // besides its lane
constexpr std::size_t kNeighbours = 2;

// All of `limit` when there is none left to look with.
std::size_t count_open(std::size_t limit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), &::closedir);
  if (!directory) return errno == EMFILE ? limit : 0;
  std::size_t count = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') ++count;
  }
  return count - 1;  // the directory itself
}

}  // namespace

std::size_t descriptors_needed(const core::Config& config) {
  // What the lanes and auxiliaries are without a word of the others.
  const auto auxiliaries = static_cast<std::size_t>(config.auxiliaries.value_or(0));
  const std::size_t lanes =
      config.lanes ? static_cast<std::size_t>(*config.lanes) : auxiliaries + 1;
  const std::size_t of_lanes = lanes * kOfALane + auxiliaries * kOfAnAuxiliary;
  if (config.size == 1) return kAlone + of_lanes;
  const auto size = static_cast<std::size_t>(config.size);
  const std::size_t peers = std::min(kNeighbours, size - 1);
  const int of_a_lane = core::flows_of_a_lane(config.flows, static_cast<int>(lanes));
  const std::size_t flows = peers * lanes * static_cast<std::size_t>(of_a_lane);
  // Rank 0 keeps a connection to every other rank.
  return kAmongOthers + of_lanes + flows + (config.rank == 0 ? size : 0);
}

core::Status check_descriptors(const core::Config& config) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  const auto limit = static_cast<std::size_t>(files.rlim_cur);
  const std::size_t open = count_open(limit);
  const std::size_t needed = descriptors_needed(config);
  if (limit - std::min(open, limit) >= needed) return {};
  return core::Error{
      core::ErrorCode::kUnavailable,
      fmt::format("this process may have {} files open (ulimit -n) and has {}; rank {} of {} needs "
                  "about {} more",
                  limit, open, config.rank, config.size, needed),
      config.rank};
}

}  // namespace fasthorovod::transport
