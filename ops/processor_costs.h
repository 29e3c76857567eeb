// What this rank's processor takes for a byte, measured in about half a millisecond.
#pragma once

#include "core/cost_model.h"

namespace fasthorovod::ops {

/// On buffers that are about as large as what is under way at once, and leave the nearest caches.
/// Any thread.
core::ProcessorCosts measure_processor_costs();

}  // namespace fasthorovod::ops
