// The bytes of a plan. In the steady state a tensor costs one byte: the distance of its cache
// position from that of the tensor before it.
#pragma once

#include "core/plan.h"
#include "core/wire.h"

namespace fasthorovod::core {

/// Of a tensor that has a cache position only that travels.
void write_plan(WireWriter& writer, const Plan& plan);

/// Cached tensors come back by position alone; ResponseCache::apply fills them in.
Plan read_plan(WireReader& reader);

}  // namespace fasthorovod::core
