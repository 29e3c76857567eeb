// What tests of process sets have in common. A set is made by all ranks of the world.
#pragma once

#include <string>
#include <vector>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {

core::Result<Handle> change_sets(Engine& engine, core::OpKind op, const std::string& name,
                                 std::vector<int> ranks);

/// Adds a set, in which every rank must succeed; its number.
core::GroupId add_set(Engine& engine, const std::string& name, std::vector<int> ranks);

/// An all-reduce of a set, in place.
Submission allreduce_in(core::GroupId set, const std::string& name, Floats& values);

}  // namespace fasthorovod::ops::testing
