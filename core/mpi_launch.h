// Which rank this process is when an MPI launcher started it: mpirun of Open MPI, or one that
// speaks PMI, as those of MPICH and Intel MPI do. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/config.h"
#include "core/result.h"

namespace fasthorovod::core {

struct MpiLaunch {
  std::string launcher;  // for messages: "mpirun of Open MPI"
  int rank = 0;
  int size = 1;
};

/// Nothing when the environment names a rank, a size or a place to meet in names of ours or of
/// Horovod's, when torchrun started this process, or when no MPI launcher did. kInvalidArgument:
/// the launcher's numbers make no sense.
Result<std::optional<MpiLaunch>> find_mpi_launch(const Environment& environment);

}  // namespace fasthorovod::core
