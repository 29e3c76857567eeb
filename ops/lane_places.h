// Starts the lanes of a rank, each in its place. Thread: any.
#pragma once

#include <memory>
#include <vector>

#include "core/lane_plan.h"
#include "core/result.h"
#include "transport/chunk_work.h"
#include "transport/lane_place.h"

namespace fasthorovod::ops {

/// One place a lane of the plan; the first ones are threads of this process. `work` outlives them.
core::Result<std::vector<std::unique_ptr<transport::LanePlace>>> start_lanes(
    const core::LanePlan& plan, transport::ChunkWork& work);

}  // namespace fasthorovod::ops
