#include "core/data_type.h"

#include <array>

namespace fasthorovod::core {

namespace {

struct Row {
  std::string_view name;
  std::size_t size;
  bool floating;
};

// In the order of the wire values.
constexpr std::array<Row, kDataTypeCount> kRows{{
    {"bool", 1, false},
    {"uint8", 1, false},
    {"int8", 1, false},
    {"uint16", 2, false},
    {"int16", 2, false},
    {"uint32", 4, false},
    {"int32", 4, false},
    {"uint64", 8, false},
    {"int64", 8, false},
    {"float16", 2, true},
    {"bfloat16", 2, true},
    {"float32", 4, true},
    {"float64", 8, true},
}};

const Row& row(DataType type) { return kRows.at(static_cast<std::size_t>(type)); }

}  // namespace

std::size_t size_of(DataType type) { return row(type).size; }

std::string_view to_string(DataType type) { return row(type).name; }

std::optional<DataType> data_type_from_wire(std::uint8_t value) {
  if (value >= kRows.size()) return std::nullopt;
  return static_cast<DataType>(value);
}

bool is_floating(DataType type) { return row(type).floating; }

}  // namespace fasthorovod::core
