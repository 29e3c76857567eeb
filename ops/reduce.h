// Local arithmetic on typed buffers: reduction, scaling, copying. Kernels for every type of
// core/data_type.h, for each instruction set Highway knows, chosen at run time. Spans need no
// alignment. Thread: any; noexcept.
//
// float16 and bfloat16 are computed in float32 and rounded once, to nearest even. NaN: a reduction
// with a NaN is a NaN (also min and max), on every rank alike. Integer sums and products wrap. bool
// is 0 or 1: sum is or, product is and. Bitwise reductions are for integers and bool.
//
// No bit of a result depends on the instruction set, or on how a buffer is cut into calls: every
// NaN that comes out is the positive quiet NaN without payload, and -0 is smaller than +0.
#pragma once

#include <cstddef>
#include <span>

#include "core/data_type.h"
#include "core/reduction.h"

namespace fasthorovod::ops {

/// accumulator[i] = reduction(accumulator[i], values[i]) for `count` elements; an average adds. No
/// overlap. core::has_reduction(type, reduction) is true.
void reduce_into(std::byte* accumulator, const std::byte* values, std::size_t count,
                 core::DataType type, core::Reduction reduction) noexcept;

/// to[i] = reduction over sources[0][i], sources[1][i], ... in that order, for `count` elements; an
/// average adds. float16 and bfloat16 are rounded once, at the end. At least one source. `to` is
/// one of the sources or overlaps none.
void reduce_many(std::byte* to, std::span<const std::byte* const> sources, std::size_t count,
                 core::DataType type, core::Reduction reduction) noexcept;

/// to[i] = from[i] * factor. `to` and `from` are equal or do not overlap. A factor of 1 copies
/// bits; bool ignores it. float32 and float64 are multiplied as double, float16 and bfloat16 as
/// float32, and rounded once. Integers are multiplied as double (64-bit ones too), truncated toward
/// zero and kept inside the type's range; when factor is 1.0 / n for a whole n they are divided by
/// n instead, so that an average is exact.
void copy_scaled(std::byte* to, const std::byte* from, std::size_t count, core::DataType type,
                 double factor) noexcept;

}  // namespace fasthorovod::ops
