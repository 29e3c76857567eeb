// 16-bit floating-point numbers one at a time, from the definition of their formats: what kernels
// are compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fasthorovod::compression {

/// A 16-bit floating-point type with that many bits of fraction.
template <int FractionBits>
struct Half {
  static constexpr int kBias = (1 << (14 - FractionBits)) - 1;
  static constexpr std::uint16_t kInfinity = 0x7FFF >> FractionBits << FractionBits;
  static constexpr std::uint16_t kQuietNan = kInfinity | (1 << (FractionBits - 1));
  std::uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) {
    if (std::isnan(value)) {
      bits = kQuietNan;
      return;
    }
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    bits = static_cast<std::uint16_t>(sign | magnitude(std::fabs(static_cast<double>(value))));
  }

  explicit operator float() const {
    const int exponent = (bits & 0x7FFF) >> FractionBits;
    const int fraction = bits & ((1 << FractionBits) - 1);
    double value = std::ldexp(fraction, 1 - kBias - FractionBits);
    if (exponent > 0)
      value = std::ldexp(fraction + (1 << FractionBits), exponent - kBias - FractionBits);
    if ((bits & kInfinity) == kInfinity) {
      value = fraction ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL;
    }
    return static_cast<float>(bits & 0x8000 ? -value : value);
  }

 private:
  static std::uint16_t magnitude(double value) {
    if (std::isinf(value)) return kInfinity;
    int exponent = std::max(std::ilogb(value), 1 - kBias);
    if (value == 0.0) exponent = 1 - kBias;
    // nearbyint rounds ties to even; a carry into the exponent is what rounding up means there.
    const auto steps =
        static_cast<std::int64_t>(std::nearbyint(std::ldexp(value, FractionBits - exponent)));
    const std::int64_t result =
        (static_cast<std::int64_t>(exponent + kBias - 1) << FractionBits) + steps;
    return static_cast<std::uint16_t>(std::min<std::int64_t>(result, kInfinity));
  }
};

using Float16 = Half<10>;
using Bfloat16 = Half<7>;

}  // namespace fasthorovod::compression
