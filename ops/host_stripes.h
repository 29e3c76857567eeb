// Which stripes of a piece the steps of a rank go through, the neighbour's first, so that the ranks
// do not all read the same area at once. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/host_layout.h"

namespace fasthorovod::ops {

std::vector<int> stripes_to_copy_in(const HostLayout& layout);
std::vector<int> stripes_to_reduce(const HostLayout& layout);
std::vector<int> stripes_to_copy_out(const HostLayout& layout);

}  // namespace fasthorovod::ops
