// What tests of the ordered door have in common: operations over vectors of floats.
#pragma once

#include <span>
#include <vector>

#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {

using Floats = std::vector<float>;

/// An operation over float32.
OrderedOperation call(OrderedKind kind, const Floats& input, Floats& output);

/// What the rank says of its lanes after an all-reduce, while no other rank has left.
LaneReport report_of_lanes(Engine& engine);

/// No output.
Floats& none();

void append(Floats& to, const Floats& values);

/// Numbers whose sum depends on the order of the additions.
Floats numbers_of(int rank, std::size_t count);

}  // namespace fasthorovod::ops::testing
