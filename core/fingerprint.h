// What tells one operation from another in a data frame. Data is trusted only when the sender's
// fingerprint is the receiver's: two ranks that disagree about an operation never mix their bytes.
#pragma once

#include <cstdint>

#include "core/plan.h"

namespace fasthorovod::core {

/// A 32-bit fingerprint of what every rank must agree on: group, sequence, op, type, reduction,
/// root, scales, codec and the element counts of the tensors in order. Names are left out: they may
/// be long, and the plan, which is the same on all ranks, has settled them. The item's cached
/// tensors must have been filled in (ResponseCache::apply).
std::uint32_t fingerprint(const PlanItem& item);

}  // namespace fasthorovod::core
