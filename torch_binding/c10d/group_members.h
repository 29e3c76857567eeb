// Where the members of a group sit in the world of an engine.
#pragma once

#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "torch_binding/engine_holder.h"

namespace fasthorovod::torch_binding {

/// World ranks by position in the group, from the members' torch ranks. Nothing when a member, or
/// this process as that member, is not in the world.
std::optional<std::vector<int>> members_in(const RunningEngine& running,
                                           const c10d::DistributedBackendOptions& options);

}  // namespace fasthorovod::torch_binding
