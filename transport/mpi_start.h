// How ranks that an MPI launcher started find one another. Thread: any.
#pragma once

#include <cstdint>
#include <memory>

#include "core/config.h"
#include "core/log.h"
#include "core/result.h"
#include "transport/control_plane.h"

namespace fasthorovod::transport {

/// The control plane of a world whose ranks meet by letters over MPI (config.mpi_launcher is set,
/// the size is more than 1), as ControlPlane::connect() otherwise. The secret is that of the file
/// when all ranks have one, else one that rank 0 makes.
core::Result<std::unique_ptr<ControlPlane>> connect_over_mpi(const core::Config& config,
                                                             std::uint32_t epoch, core::Log& log);

}  // namespace fasthorovod::transport
