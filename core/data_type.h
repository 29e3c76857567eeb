// The element types that travel, and their sizes. Values are wire values: never renumber, only
// append.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fasthorovod::core {

enum class DataType : std::uint8_t {
  kBool = 0,
  kUint8 = 1,
  kInt8 = 2,
  kUint16 = 3,
  kInt16 = 4,
  kUint32 = 5,
  kInt32 = 6,
  kUint64 = 7,
  kInt64 = 8,
  kFloat16 = 9,
  kBfloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
};

inline constexpr int kDataTypeCount = 13;

/// Bytes of one element: 1, 2, 4 or 8.
std::size_t size_of(DataType type);

/// The name users see, as torch spells it: "float32", "bfloat16", "bool".
std::string_view to_string(DataType type);

/// The type whose wire value is `value`, or nothing when no type has it.
std::optional<DataType> data_type_from_wire(std::uint8_t value);

/// True for the types that have fractions (float16, bfloat16, float32, float64).
bool is_floating(DataType type);

}  // namespace fasthorovod::core
