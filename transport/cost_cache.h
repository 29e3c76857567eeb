// What moving bytes costs this machine (core/lane_costs.h), as it was measured once, in a file of
// the user's cache folder: XDG_CACHE_HOME, or .cache at home. It counts for the same processor,
// kernel and build only. Thread: any; readers see an old file or a new one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/lane_costs.h"
#include "core/result.h"

namespace fasthorovod::transport {

/// Empty where the user has no home.
std::filesystem::path usual_cost_folder();

/// What the costs depend on, on one line: processor, kernel, build.
std::string machine_key();

/// Nothing when there is no such file, or it is damaged or another machine's.
std::optional<core::LaneCosts> load_costs(const std::filesystem::path& folder = usual_cost_folder(),
                                          const std::string& key = machine_key());

/// Makes the folder if need be. Returns the file.
core::Result<std::filesystem::path> store_costs(
    const core::LaneCosts& costs, const std::filesystem::path& folder = usual_cost_folder(),
    const std::string& key = machine_key());

}  // namespace fasthorovod::transport
