// What encoding lost, between two steps: v = scale * input + residual is encoded, and what encode()
// left of v is the next residual.
#pragma once

#include <cstddef>
#include <span>

namespace fasthorovod::compression {

/// values = scale * input + residual, element by element, of equal sizes; an empty residual counts
/// as zeros.
void compensate(std::span<const float> input, std::span<const float> residual, float scale,
                std::span<float> values);

/// residual = left where that is finite; what was there stays where it is not, so that NaN and
/// infinity never enter a residual.
void keep(std::span<const float> left, std::span<float> residual);

}  // namespace fasthorovod::compression
