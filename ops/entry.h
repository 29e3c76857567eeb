// One tensor between submit and completion: what was submitted, and the handle its owner waits on.
#pragma once

#include <memory>
#include <utility>

#include "ops/engine.h"
#include "ops/handle.h"

namespace fasthorovod::ops {

struct Entry {
  Submission submission;
  Handle handle;
  bool planned = false;  // engine thread: the executor has it
};

/// Owners: the pending table until the operation completes, and whoever works on it meanwhile.
using EntryPtr = std::shared_ptr<Entry>;

}  // namespace fasthorovod::ops
