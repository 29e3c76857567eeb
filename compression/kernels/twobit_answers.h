// Sums of `twobit` codes as integers of 4, 8 or 16 bits in two's complement; of two that share a
// byte the first is the lower one. The most negative value stands for a sum that is not a number.
// For each instruction set Highway knows, chosen at run time, with the same bits on all of them.
// Thread: any; noexcept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fasthorovod::compression {

enum class SumBits : std::uint8_t { k4 = 4, k8 = 8, k16 = 16 };

inline constexpr int kMostTwobitRanks = 32767;

/// The fewest bits that hold every sum of so many codes, 1 to kMostTwobitRanks.
SumBits sum_bits(int ranks);

/// Whole bytes.
std::size_t sum_bytes(std::size_t elements, SumBits bits);

/// Sums are whole numbers that fit the bits, or not finite.
void write_sums(std::span<const float> sums, SumBits bits, std::byte* answer) noexcept;

/// values[i] = sum[i] * unit, or NaN.
void read_sums(const std::byte* answer, SumBits bits, float unit, std::span<float> values) noexcept;

}  // namespace fasthorovod::compression
