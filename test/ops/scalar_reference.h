// Reductions and scalings one element at a time, written from the contract in ops/reduce.h and
// nothing else, and the values to try them on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"

namespace fasthorovod::ops {

using Bytes = std::vector<std::byte>;

std::vector<core::DataType> all_data_types();

/// Those that the type has.
std::vector<core::Reduction> reductions_of(core::DataType type);

void reference_reduce(Bytes& accumulator, const Bytes& values, core::DataType type,
                      core::Reduction reduction);

/// All inputs, one after the other: each sum is rounded to the type.
Bytes reference_reduce_in_turn(const std::vector<Bytes>& inputs, core::DataType type,
                               core::Reduction reduction);

/// All inputs, in their order; 16-bit floating-point ones are summed as float32.
Bytes reference_reduce_many(const std::vector<Bytes>& inputs, core::DataType type,
                            core::Reduction reduction);

Bytes reference_scale(const Bytes& from, core::DataType type, double factor);

/// `count` elements that are small whole numbers (0 and 1 for bool): sums and products of some are
/// exact in every type.
Bytes small_values(core::DataType type, std::size_t count, std::mt19937_64& random);

/// `count` elements of any bits; floating-point ones are often NaN, infinite, zero of either sign,
/// or subnormal.
Bytes any_values(core::DataType type, std::size_t count, std::mt19937_64& random);

}  // namespace fasthorovod::ops
