// Who this rank is when torchrun, or whoever sets the same variables, started it. Pure.
#pragma once

#include "core/config.h"
#include "core/result.h"

namespace fasthorovod::tools {

/// An environment that says in FASTHOROVOD_* what RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
/// say, unless a rank, a size or the launcher's store is given in names of ours or of Horovod's.
/// Errors: some of the four are missing or make no sense.
///
/// The store at MASTER_PORT is torch's alone, so rank 0 listens at a port next to it, which
/// torchrun_port() tells; FASTHOROVOD_RENDEZVOUS overrides it.
core::Result<core::Environment> understand_torchrun(core::Environment environment);

/// 20000 to 29999, never the port that is given, and below those that systems give to connections.
int torchrun_port(int master_port);

}  // namespace fasthorovod::tools
