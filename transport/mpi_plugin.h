// Opens the plug-in fasthorovod-mpi. Thread: any.
#pragma once

#include <filesystem>
#include <vector>

#include "core/result.h"
#include "transport/mpi_module.h"

namespace fasthorovod::transport {

/// The plug-in of the first folder that has one, opened for the life of the process. kUnavailable:
/// no folder has it, its MPI library can not be loaded, or it is of another build; the message says
/// which, and what to do.
core::Result<Mpi*> open_mpi_plugin(const std::vector<std::filesystem::path>& folders);

/// Whether a folder has a plug-in, be it of use or not.
bool has_mpi_plugin(const std::vector<std::filesystem::path>& folders);

}  // namespace fasthorovod::transport
