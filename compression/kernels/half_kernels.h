// Between float32 and the two 16-bit formats. For each instruction set Highway knows, chosen at run
// time, with the same bits on all of them: every NaN that comes out is the positive quiet NaN
// without payload. Halves need no alignment. Thread: any; noexcept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fasthorovod::compression {

enum class HalfType : std::uint8_t { kFloat16, kBfloat16 };

/// halves[i] = values[i] * factor in float32, then rounded to nearest even; infinite where too
/// large.
void narrow(std::span<const float> values, float factor, HalfType type, std::byte* halves) noexcept;

/// values[i] = halves[i].
void widen(const std::byte* halves, HalfType type, std::span<float> values) noexcept;

/// sums[i] += halves[i].
void widen_and_add(const std::byte* halves, HalfType type, std::span<float> sums) noexcept;

}  // namespace fasthorovod::compression
