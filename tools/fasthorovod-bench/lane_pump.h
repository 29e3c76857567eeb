// A lane and its peer, both turned by the calling thread, that carry chunks as fast as it can: what
// one core carries both ways. Every chunk is read from memory and received into memory that no
// cache holds any more, as those of large tensors are. Thread: owner.
#pragma once

#include <chrono>
#include <cstddef>

#include "core/placement_model.h"
#include "core/result.h"

namespace fasthorovod::tools {

/// Bytes a second that a lane would send, and as many that it would receive, on the processor that
/// the calling thread is bound to. Runs for about that long.
core::Result<double> pump(const core::LaneLoad& load, std::chrono::milliseconds time);

}  // namespace fasthorovod::tools
