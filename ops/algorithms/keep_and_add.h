// Where an all-reduce has what other ranks send of a part of the buffer until it adds it up: in
// the scratch, one rank behind the other, in the order of the ranks. Pure functions.
#pragma once

#include <cstdint>

#include "ops/schedule.h"

namespace fasthorovod::ops {

/// Bytes of scratch for `part` of the buffer.
std::uint64_t scratch_for(const Shape& shape, ByteSpan part);

/// Adds the sum of a chunk of `part`, which waits for nothing yet; its index.
std::uint32_t add_sum(Schedule& schedule, const Shape& shape, ByteSpan part, ByteSpan chunk);

/// Adds the receive of a chunk of `part` from another rank, for that sum; its index.
std::uint32_t add_kept_receive(Schedule& schedule, const Shape& shape, ByteSpan part,
                               ByteSpan chunk, int from, std::uint32_t sum);

}  // namespace fasthorovod::ops
