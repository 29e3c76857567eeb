// What a rank's lanes carry with auxiliaries and without, measured: its own lane and those of real
// auxiliary processes, and a peer in this process whose lanes are threads, over connections inside
// the host. It takes as many cores again as the rank's lanes. Thread: owner.
#pragma once

#include <chrono>

#include "core/log.h"
#include "core/placement_model.h"
#include "core/result.h"

namespace fasthorovod::tools {

/// Bytes a second that the rank sends, and as many that it receives. `site`: how many flows a lane
/// has, what it carries, and where the tensors lie; the link is no limit.
core::Result<double> rank_with_auxiliaries(const core::RankSite& site, int auxiliaries,
                                           std::chrono::milliseconds time, core::Log& log);

}  // namespace fasthorovod::tools
