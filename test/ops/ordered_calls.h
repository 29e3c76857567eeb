// What tests of the ordered door have in common: operations over vectors of floats, and their
// outcomes.
#pragma once

#include <span>
#include <vector>

#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {

using Floats = std::vector<float>;

/// An operation over float32.
OrderedOperation call(OrderedKind kind, const Floats& input, Floats& output);

/// No output.
Floats& none();

void append(Floats& to, const Floats& values);

/// Numbers whose sum depends on the order of the additions.
Floats numbers_of(int rank, std::size_t count);

/// Waits at most 30 s, so that a lost completion fails the test instead of hanging it.
core::Status outcome(const core::Result<Handle>& handle);
void expect_success(const core::Result<Handle>& handle);
/// Failed with that code and with all of these words.
void expect_failure(const core::Result<Handle>& handle, core::ErrorCode code,
                    const std::vector<std::string>& words);

}  // namespace fasthorovod::ops::testing
