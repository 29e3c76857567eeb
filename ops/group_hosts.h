// Which positions of a group share a host. Pure function; any thread.
#pragma once

#include <vector>

#include "core/world.h"

namespace fasthorovod::ops {

/// Positions by host, both in ascending order; hosts in the order of their first position.
/// `members` are world ranks by position.
std::vector<std::vector<int>> hosts_of(const core::World& world, const std::vector<int>& members);

}  // namespace fasthorovod::ops
