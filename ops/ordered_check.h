// What can be said of an ordered operation before anything is sent: whether its sizes fit, what it
// is called in messages, and its fingerprint. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "ops/group_table.h"
#include "ops/ordered.h"

namespace fasthorovod::ops {

/// Fills in `blocks` and `received_blocks` where they were left out, and the type of a barrier.
/// kInvalidArgument when sizes do not fit.
core::Status complete(OrderedOperation& operation, const Group& group);

/// "all_reduce of 1024 float32, sum": all that ranks can disagree about.
std::string describe(const OrderedOperation& operation);

/// Of what all ranks must agree on.
std::uint32_t fingerprint(const OrderedOperation& operation, std::uint64_t sequence);

}  // namespace fasthorovod::ops
