// How many cores' worth of time the control groups of this process allow it. Stateless; any thread.
#pragma once

#include <filesystem>
#include <optional>

namespace fasthorovod::transport {

/// The least quota of this process's group and of those around it, in whole cores, rounded down but
/// at least 1; nothing when none of them has one. Reads both versions of the kernel's interface.
/// `groups` lists the groups of the process; `root` is where their trees are mounted.
std::optional<int> core_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                              const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace fasthorovod::transport
