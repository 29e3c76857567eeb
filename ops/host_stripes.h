// Which stripes of a piece the steps of a rank go through, the neighbour's first, so that the ranks
// do not all read the same area at once. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/host_layout.h"

namespace fasthorovod::ops {

/// At most that many bytes on one host are reduced by all of its ranks: the additions cost less
/// than to wait for each other a second time.
inline constexpr std::uint64_t kSmallBytes = 32U << 10;
bool is_small(const HostLayout& layout);

std::vector<int> stripes_to_copy_in(const HostLayout& layout);
std::vector<int> stripes_to_reduce(const HostLayout& layout);
std::vector<int> stripes_to_copy_out(const HostLayout& layout);

}  // namespace fasthorovod::ops
