// What this rank's processor takes for a byte, measured in about half a millisecond.
#pragma once

#include "core/cost_model.h"

namespace fasthorovod::ops {

/// On buffers that stay in the cache of a core, as chunks do. Any thread.
core::ProcessorCosts measure_processor_costs();

}  // namespace fasthorovod::ops
