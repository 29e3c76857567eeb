// What can be refused before anything is sent: a submission that can never work, on this rank
// alone.
#pragma once

#include "core/result.h"
#include "ops/engine.h"
#include "ops/process_sets.h"

namespace fasthorovod::ops {

/// kInvalidArgument naming the tensor, what was given and what is allowed; or success.
core::Status check(const Submission& submission, const ProcessSets& sets);

}  // namespace fasthorovod::ops
