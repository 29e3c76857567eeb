// From checked options to running ranks and back to an exit code: wires the parts of the launcher
// together.
#pragma once

#include <vector>

#include "core/result.h"
#include "tools/fasthorovodrun/environment.h"
#include "tools/fasthorovodrun/options.h"
#include "tools/fasthorovodrun/placement.h"

namespace fasthorovod::tools {

/// Where every rank goes, or why that is impossible. `own_name` is this machine's.
core::Result<std::vector<Place>> plan_places(const Options& options, std::string_view own_name);

/// Runs the command on all places. Errors mean that nothing was started.
core::Result<int> launch(const Options& options, const std::vector<Place>& places,
                         const std::vector<std::string>& environment);

}  // namespace fasthorovod::tools
