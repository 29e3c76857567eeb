// What the ranks put into an all-reduce, and what must come out of it, bit by bit: small integers,
// whose reduction is exact in every type and in any order, and differs from place to place. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"
#include "core/result.h"

namespace fasthorovod::tools {

/// Values repeat after so many elements. Neither a power of two nor a factor of a chunk, so that
/// data in a wrong place shows.
inline constexpr std::size_t kPatternPeriod = 7;

/// One period, as bytes of the type.
using Pattern = std::vector<std::byte>;

/// kInvalidArgument: so many ranks would leave the integers that the type holds exactly.
core::Status check_exact(core::DataType type, core::Reduction reduction, int size);

/// What `rank` contributes. The reduction is not bitwise.
Pattern contribution(core::DataType type, core::Reduction reduction, int rank);

/// What every rank gets when `size` ranks contribute. An average is the sum times 1 / size, in
/// double (float32 for the 16-bit types) and rounded once; integers are divided.
Pattern expected_result(core::DataType type, core::Reduction reduction, int size);

/// Fills `values` with the pattern, over and over.
void fill(std::span<std::byte> values, const Pattern& pattern);

/// How many elements of `values` are not the pattern's.
std::uint64_t count_wrong(std::span<const std::byte> values, const Pattern& pattern);

}  // namespace fasthorovod::tools
