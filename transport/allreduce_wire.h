// Wishes and plans for all-reduces in the messages of the start. Immutable values; any thread.
#pragma once

#include <cstddef>

#include "core/cost_model.h"
#include "core/wire.h"

namespace fasthorovod::transport {

inline constexpr std::size_t kLeastAllreduceWishBytes = 2;

void write_allreduce_wish(core::WireWriter& writer, const core::AllreduceWish& wish);
/// Fails the reader when no rank can have such a wish.
core::AllreduceWish read_allreduce_wish(core::WireReader& reader);

void write_allreduce_plan(core::WireWriter& writer, const core::AllreducePlan& plan);
/// Fails the reader when no rank 0 makes such a plan.
core::AllreducePlan read_allreduce_plan(core::WireReader& reader);

}  // namespace fasthorovod::transport
