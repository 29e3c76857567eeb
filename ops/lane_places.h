// Starts the lanes of a rank, each in its place. Thread: any.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/config.h"
#include "core/lane_plan.h"
#include "core/result.h"
#include "core/world.h"
#include "transport/chunk_work.h"
#include "transport/lane_place.h"
#include "transport/mpi_process.h"
#include "transport/peer_rates.h"

namespace fasthorovod::ops {

/// MPI, where it carries the data between this rank and others; else null. Blocks until all ranks
/// have it, at most config.start_timeout. kUnavailable, kInvalidArgument: it can not.
core::Result<transport::MpiProcess*> reach_data_plane(const core::Config& config);

/// For all lanes of a plan, wherever they run.
std::shared_ptr<transport::RateBoard> make_rate_board(const core::LanePlan& plan);

/// One place for each lane of the plan that is a thread of this process. `work` outlives them.
core::Result<std::vector<std::unique_ptr<transport::LanePlace>>> start_lanes(
    const core::LanePlan& plan, transport::ChunkWork& work,
    std::shared_ptr<transport::RateBoard> rates);

/// The one lane of a rank whose data MPI carries. `busy` as in MpiLaneOptions.
core::Result<std::vector<std::unique_ptr<transport::LanePlace>>> start_mpi_lane(
    const core::World& world, transport::MpiProcess& mpi, transport::ChunkWork& work,
    std::function<bool()> busy);

}  // namespace fasthorovod::ops
