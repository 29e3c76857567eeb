// Where parts of this installation lie that are looked for while it runs. Thread: any.
#pragma once

#include <filesystem>
#include <vector>

namespace fasthorovod::transport {

/// The folder of the module that this code is part of, then that of the running program. One that
/// can not be told is empty.
std::vector<std::filesystem::path> own_folders();

}  // namespace fasthorovod::transport
