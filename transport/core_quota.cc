#include "transport/core_quota.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> number_in(const fs::path& file) {
  std::int64_t value = 0;
  if (std::ifstream(file) >> value) return value;
  return std::nullopt;
}

std::optional<int> whole_cores(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>(quota / period, 1, 1 << 20));
}

// "150000 100000"; without a limit the first word is "max".
std::optional<int> quota_of_version_2(const fs::path& group) {
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (std::ifstream(group / "cpu.max") >> quota >> period) return whole_cores(quota, period);
  return std::nullopt;
}

// Without a limit the quota is -1.
std::optional<int> quota_of_version_1(const fs::path& group) {
  return whole_cores(number_in(group / "cpu.cfs_quota_us").value_or(-1),
                     number_in(group / "cpu.cfs_period_us").value_or(0));
}

// A group may not use more than those around it. A container often sees its own group as the root
// of the tree, although the list still says where it is on the host: levels that are not there
// count as without a limit.
template <typename QuotaOf>
std::optional<int> least_quota(const fs::path& tree, const fs::path& group, QuotaOf quota_of) {
  std::optional<int> least = quota_of(tree);
  fs::path level = tree;
  for (const fs::path& part : group.relative_path()) {
    level /= part;
    if (const auto quota = quota_of(level)) least = std::min(*quota, least.value_or(*quota));
  }
  return least;
}

}  // namespace

std::optional<int> core_quota(const fs::path& groups, const fs::path& root) {
  std::ifstream list(groups);
  std::optional<int> least;
  // "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1.
  for (std::string line; std::getline(list, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    std::optional<int> quota;
    if (controllers == ",,") quota = least_quota(root, group, quota_of_version_2);
    if (controllers.find(",cpu,") != std::string::npos) {
      quota = least_quota(root / "cpu", group, quota_of_version_1);
    }
    if (quota) least = std::min(*quota, least.value_or(*quota));
  }
  return least;
}

}  // namespace fasthorovod::transport
