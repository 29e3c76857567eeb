// A lane wish in the messages of the start. Immutable values; any thread.
#pragma once

#include "core/lane_plan.h"
#include "core/wire.h"

namespace fasthorovod::transport {

inline constexpr std::size_t kLeastLaneWishBytes = 8;

void write_lane_wish(core::WireWriter& writer, const core::LaneWish& wish);

/// Fails the reader when no rank can have such a wish.
core::LaneWish read_lane_wish(core::WireReader& reader);

}  // namespace fasthorovod::transport
