#include "test/ops/scalar_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "test/compression/half.h"

namespace fasthorovod::ops {
namespace {

using compression::Bfloat16;
using compression::Float16;
using core::DataType;
using core::Reduction;

struct Bool {
  std::uint8_t bits = 0;
};

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

template <typename T>
T one_nan(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

template <typename T>
T reduce_float(T a, T b, Reduction reduction) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  const bool a_first = a < b || (a == b && std::signbit(a));
  switch (reduction) {
    case Reduction::kAverage:
    case Reduction::kSum:
      return one_nan(a + b);
    case Reduction::kMin:
      return a_first ? a : b;
    case Reduction::kMax:
      return a_first ? b : a;
    case Reduction::kProduct:
      return one_nan(a * b);
    default:
      return 0;  // floats have no bitwise reductions
  }
}

template <typename T>
T reduce_integer(T a, T b, Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
    case Reduction::kSum:
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kProduct:
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case Reduction::kBitAnd:
      return static_cast<T>(a & b);
    case Reduction::kBitOr:
      return static_cast<T>(a | b);
    case Reduction::kBitXor:
      return static_cast<T>(a ^ b);
  }
  return 0;
}

Bool reduce_bool(Bool a, Bool b, Reduction reduction) {
  if (reduction == Reduction::kBitXor) return {static_cast<std::uint8_t>(a.bits ^ b.bits)};
  const bool both = reduction == Reduction::kMin || reduction == Reduction::kProduct ||
                    reduction == Reduction::kBitAnd;
  return {static_cast<std::uint8_t>(both ? a.bits & b.bits : a.bits | b.bits)};
}

template <typename T>
T reduce_one(T a, T b, Reduction reduction) {
  if constexpr (std::is_same_v<T, Bool>) {
    return reduce_bool(a, b, reduction);
  } else if constexpr (kIsHalf<T>) {
    return T(reduce_float(static_cast<float>(a), static_cast<float>(b), reduction));
  } else if constexpr (std::is_floating_point_v<T>) {
    return reduce_float(a, b, reduction);
  } else {
    return reduce_integer(a, b, reduction);
  }
}

template <typename T>
T scale_integer(T value, double factor) {
  const double divisor = std::round(1.0 / factor);
  if (divisor > 1.0 && divisor < 1e9 && 1.0 / divisor == factor) {
    return static_cast<T>(std::truncl(static_cast<long double>(value) / divisor));
  }
  const double product = static_cast<double>(value) * factor;
  if (std::isnan(product)) return 0;
  const long double low = std::numeric_limits<T>::min();
  const long double high = std::numeric_limits<T>::max();
  return static_cast<T>(std::clamp<long double>(std::trunc(product), low, high));
}

template <typename T>
T scale_one(T value, double factor) {
  if constexpr (std::is_same_v<T, Bool>) {
    return value;
  } else if constexpr (kIsHalf<T>) {
    return T(one_nan(static_cast<float>(value) * static_cast<float>(factor)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(one_nan(static_cast<double>(value) * factor));
  } else {
    return scale_integer(value, factor);
  }
}

template <typename T>
T random_float(std::mt19937_64& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const T sign = random() % 2 == 0 ? T{1} : T{-1};
  switch (random() % 8) {
    case 0:
      return sign * T{0};
    case 1:
      return sign * std::numeric_limits<T>::infinity();
    case 2:
      return sign * std::numeric_limits<T>::denorm_min() * static_cast<T>(random() % 100);
    case 3:
      return sign * static_cast<T>(random() % 1000);
    case 4:
      return sign * std::numeric_limits<T>::max();
    default:
      return std::bit_cast<T>(static_cast<Bits>(random()));  // a NaN now and then
  }
}

template <typename T>
T random_value(std::mt19937_64& random) {
  if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(random() % 2)};
  } else if constexpr (kIsHalf<T>) {
    T value;
    value.bits = static_cast<std::uint16_t>(random());
    return value;
  } else if constexpr (std::is_floating_point_v<T>) {
    return random_float<T>(random);
  } else {
    return static_cast<T>(random());
  }
}

template <typename T>
T small_value(std::mt19937_64& random) {
  const auto number = random() % 2 + 1;
  if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(number - 1)};
  } else if constexpr (kIsHalf<T>) {
    return T(static_cast<float>(number));
  } else {
    return static_cast<T>(number);
  }
}

template <typename Function>
auto with_type(DataType type, Function function) {
  switch (type) {
    case DataType::kBool:
      return function(Bool{});
    case DataType::kUint8:
      return function(std::uint8_t{});
    case DataType::kInt8:
      return function(std::int8_t{});
    case DataType::kUint16:
      return function(std::uint16_t{});
    case DataType::kInt16:
      return function(std::int16_t{});
    case DataType::kUint32:
      return function(std::uint32_t{});
    case DataType::kInt32:
      return function(std::int32_t{});
    case DataType::kUint64:
      return function(std::uint64_t{});
    case DataType::kInt64:
      return function(std::int64_t{});
    case DataType::kFloat16:
      return function(Float16{});
    case DataType::kBfloat16:
      return function(Bfloat16{});
    case DataType::kFloat32:
      return function(float{});
    case DataType::kFloat64:
      break;
  }
  return function(double{});
}

template <typename T>
T element(const Bytes& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void set_element(Bytes& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T reduce_element(const std::vector<Bytes>& inputs, std::size_t index, Reduction reduction) {
  using Accumulator = std::conditional_t<kIsHalf<T>, float, T>;
  auto result = static_cast<Accumulator>(element<T>(inputs[0], index));
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    result = reduce_one(result, static_cast<Accumulator>(element<T>(inputs[i], index)), reduction);
  }
  if constexpr (std::is_floating_point_v<Accumulator>) result = one_nan(result);
  return static_cast<T>(result);
}

template <typename Make>
Bytes generate(DataType type, std::size_t count, Make make) {
  Bytes bytes(count * core::size_of(type));
  with_type(type, [&](auto zero) {
    for (std::size_t i = 0; i < count; ++i) set_element(bytes, i, make(zero));
  });
  return bytes;
}

}  // namespace

std::vector<DataType> all_data_types() {
  std::vector<DataType> types;
  for (int i = 0; i < core::kDataTypeCount; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}

std::vector<Reduction> reductions_of(DataType type) {
  std::vector<Reduction> reductions;
  for (const Reduction reduction : core::kAllReductions) {
    if (core::has_reduction(type, reduction)) reductions.push_back(reduction);
  }
  return reductions;
}

void reference_reduce(Bytes& accumulator, const Bytes& values, DataType type, Reduction reduction) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < accumulator.size() / sizeof(T); ++i) {
      set_element(accumulator, i,
                  reduce_one(element<T>(accumulator, i), element<T>(values, i), reduction));
    }
  });
}

Bytes reference_reduce_in_turn(const std::vector<Bytes>& inputs, DataType type,
                               Reduction reduction) {
  Bytes result = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    reference_reduce(result, inputs[i], type, reduction);
  }
  return result;
}

Bytes reference_reduce_many(const std::vector<Bytes>& inputs, DataType type, Reduction reduction) {
  Bytes result(inputs[0].size());
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < result.size() / sizeof(T); ++i) {
      set_element(result, i, reduce_element<T>(inputs, i, reduction));
    }
  });
  return result;
}

Bytes reference_scale(const Bytes& from, DataType type, double factor) {
  if (factor == 1.0) return from;
  Bytes to(from.size());
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < from.size() / sizeof(T); ++i) {
      set_element(to, i, scale_one(element<T>(from, i), factor));
    }
  });
  return to;
}

Bytes small_values(DataType type, std::size_t count, std::mt19937_64& random) {
  return generate(type, count,
                  [&random](auto zero) { return small_value<decltype(zero)>(random); });
}

Bytes any_values(DataType type, std::size_t count, std::mt19937_64& random) {
  return generate(type, count,
                  [&random](auto zero) { return random_value<decltype(zero)>(random); });
}

}  // namespace fasthorovod::ops
