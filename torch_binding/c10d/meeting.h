// How a group of torch.distributed comes to its engine and its number.
//
// The members meet at torch's store (store_meeting.h). The first one says what all do: share the
// engine that they have (named by its job), or start one (under a job that nobody used before).
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "core/result.h"
#include "torch_binding/c10d/group.h"
#include "torch_binding/engine_holder.h"

namespace fasthorovod::torch_binding {

/// Where a group that torch made meets: its store, below the names of groups. Torch counts these
/// also for attempts that fail, so ranks that have tried more often than others do not agree on
/// them.
c10::intrusive_ptr<c10d::Store> meeting_store(const c10d::DistributedBackendOptions& options);

/// The group as the engine knows it from now on. Blocks until all members are there. Uses a clone
/// of `store`, and nothing of the options' own.
core::Result<Group> form_group(const c10d::DistributedBackendOptions& options,
                               const c10::intrusive_ptr<c10d::Store>& store, EngineHolder& holder);

}  // namespace fasthorovod::torch_binding
