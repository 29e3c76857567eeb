// The codes of `twobit`: two bits an element, four elements a byte, the first in the two top bits,
// as in MXNet. 11 stands for +threshold, 10 for -threshold, 00 for nothing; 01, which MXNet does
// not use, for a value that was not finite. For each instruction set Highway knows, chosen at run
// time, with the same bits on all of them. Thread: any; noexcept.
#pragma once

#include <cstddef>
#include <span>

namespace fasthorovod::compression {

/// Codes fill whole words of 32 bits; what lies behind the last code is 0.
inline constexpr std::size_t kTwobitCodesAWord = 16;
inline constexpr std::size_t kTwobitWordBytes = 4;

/// Writes the codes of all values and takes from each what its code says; a value that is not
/// finite stays as it is. `threshold` is positive and finite.
void encode_twobit(std::span<float> values, float threshold, std::byte* codes) noexcept;

/// Adds 1, -1, 0 or NaN to each sum.
void add_twobit(const std::byte* codes, std::span<float> sums) noexcept;

}  // namespace fasthorovod::compression
