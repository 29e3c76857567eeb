#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "compression/kernels/targets.h"
#include "ops/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/copy_scaled.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "compression/kernels/formats-inl.h"

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using compression::HWY_NAMESPACE::Bfloat16Format;
using compression::HWY_NAMESPACE::Float16Format;
using compression::HWY_NAMESPACE::PlainFormat;
using compression::HWY_NAMESPACE::WideFloatFormat;
using compression::HWY_NAMESPACE::with_one_nan;

/// The elements that fill no vector: through one of their own, so that they get the same bits.
template <typename Format, typename V>
HWY_INLINE void scale_rest(typename Format::Memory* to, const typename Format::Memory* from,
                           std::size_t count, V factor) {
  const typename Format::Tag tag;
  typename Format::Memory rest[hn::MaxLanes(tag)] = {};
  std::memcpy(rest, from, count * sizeof(rest[0]));
  const V scaled = hn::Mul(Format::load(tag, rest), factor);
  Format::store(tag, with_one_nan(tag, scaled), rest);
  std::memcpy(to, rest, count * sizeof(rest[0]));
}

template <typename Format>
void scale_lanes(std::byte* to_bytes, const std::byte* from_bytes, std::size_t count,
                 double factor_value) {
  using Memory = typename Format::Memory;
  const typename Format::Tag tag;
  const auto factor = hn::Set(tag, static_cast<hn::TFromD<typename Format::Tag>>(factor_value));
  const std::size_t lanes = hn::Lanes(tag);
  auto* to = reinterpret_cast<Memory*>(to_bytes);
  const auto* from = reinterpret_cast<const Memory*>(from_bytes);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto scaled = hn::Mul(Format::load(tag, from + i), factor);
    Format::store(tag, with_one_nan(tag, scaled), to + i);
  }
  if (i < count) scale_rest<Format>(to + i, from + i, count - i, factor);
}

/// A product of two floats has few enough digits for double, so lanes of float round it to the same
/// bits.
void scale_float32(std::byte* to, const std::byte* from, std::size_t count, double factor) {
  const bool is_a_float = static_cast<double>(static_cast<float>(factor)) == factor;
  if (is_a_float) return scale_lanes<PlainFormat<float>>(to, from, count, factor);
  scale_lanes<WideFloatFormat>(to, from, count, factor);
}

void scale_floats(std::byte* to, const std::byte* from, std::size_t count, core::DataType type,
                  double factor) {
  switch (type) {
    case core::DataType::kFloat16:
      return scale_lanes<Float16Format>(to, from, count, factor);
    case core::DataType::kBfloat16:
      return scale_lanes<Bfloat16Format>(to, from, count, factor);
    case core::DataType::kFloat64:
      return scale_lanes<PlainFormat<double>>(to, from, count, factor);
    default:
      return scale_float32(to, from, count, factor);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::ops {
namespace {

HWY_EXPORT(scale_floats);

/// n, when factor is 1.0 / n for a whole n above 1 that fits 31 bits.
std::optional<std::int32_t> whole_divisor(double factor) {
  const double divisor = std::round(1.0 / factor);
  if (!(divisor > 1.0 && divisor <= std::numeric_limits<std::int32_t>::max())) return std::nullopt;
  if (1.0 / divisor != factor) return std::nullopt;
  return static_cast<std::int32_t>(divisor);
}

/// `value` toward zero, at the nearer end of T's range when outside; 0 for NaN.
template <typename T>
T truncated(double value) {
  // Both bounds are exact as double: the upper one is the first whole number too large.
  constexpr double kTooLarge =
      2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  if (std::isnan(value)) return 0;
  if (value >= kTooLarge) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

template <typename T, typename Function>
void transform(std::byte* to, const std::byte* from, std::size_t count, Function function) {
  for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {
    T value = 0;
    std::memcpy(&value, from + i, sizeof(T));
    value = function(value);
    std::memcpy(to + i, &value, sizeof(T));
  }
}

template <typename T>
void scale_integers(std::byte* to, const std::byte* from, std::size_t count, double factor) {
  if (const std::optional<std::int32_t> divisor = whole_divisor(factor)) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const Wide wide_divisor = static_cast<Wide>(*divisor);
    transform<T>(to, from, count, [wide_divisor](T value) {
      return static_cast<T>(static_cast<Wide>(value) / wide_divisor);
    });
    return;
  }
  transform<T>(to, from, count,
               [factor](T value) { return truncated<T>(static_cast<double>(value) * factor); });
}

}  // namespace

void copy_scaled(std::byte* to, const std::byte* from, std::size_t count, core::DataType type,
                 double factor) noexcept {
  using core::DataType;
  if (type == DataType::kBool || factor == 1.0) {
    if (to != from && count > 0) std::memcpy(to, from, count * core::size_of(type));
    return;
  }
  switch (type) {
    case DataType::kBool:
      return;
    case DataType::kUint8:
      return scale_integers<std::uint8_t>(to, from, count, factor);
    case DataType::kInt8:
      return scale_integers<std::int8_t>(to, from, count, factor);
    case DataType::kUint16:
      return scale_integers<std::uint16_t>(to, from, count, factor);
    case DataType::kInt16:
      return scale_integers<std::int16_t>(to, from, count, factor);
    case DataType::kUint32:
      return scale_integers<std::uint32_t>(to, from, count, factor);
    case DataType::kInt32:
      return scale_integers<std::int32_t>(to, from, count, factor);
    case DataType::kUint64:
      return scale_integers<std::uint64_t>(to, from, count, factor);
    case DataType::kInt64:
      return scale_integers<std::int64_t>(to, from, count, factor);
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kFloat32:
    case DataType::kFloat64:
      HWY_DYNAMIC_DISPATCH(scale_floats)(to, from, count, type, factor);
  }
}

}  // namespace fasthorovod::ops
#endif  // HWY_ONCE
