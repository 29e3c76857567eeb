// How values of several ranks become one. Values are wire values: never renumber, only append.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/data_type.h"

namespace fasthorovod::core {

// kAverage is a sum whose result is divided by the number of ranks of the group, also by those that
// have joined. bool: sum is "or", product is "and". Integers wrap in sums and products and truncate
// toward zero in averages.
enum class Reduction : std::uint8_t {
  kAverage = 0,
  kSum = 1,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
  kBitAnd = 6,
  kBitOr = 7,
  kBitXor = 8,
};

inline constexpr Reduction kAllReductions[] = {
    Reduction::kAverage, Reduction::kSum,    Reduction::kMin,   Reduction::kMax,
    Reduction::kProduct, Reduction::kBitAnd, Reduction::kBitOr, Reduction::kBitXor};

/// False for the bitwise reductions of types that have fractions. bool counts as one bit.
bool has_reduction(DataType type, Reduction reduction);

std::string_view to_string(Reduction reduction);
std::optional<Reduction> reduction_from_wire(std::uint8_t value);

}  // namespace fasthorovod::core
