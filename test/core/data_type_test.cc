#include "core/data_type.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace fasthorovod::core {
namespace {

TEST(DataType, HasASizeAndANameOfItsOwnForEveryWireValue) {
  std::set<std::string_view> names;
  for (std::uint8_t value = 0; value < kDataTypeCount; ++value) {
    const auto type = data_type_from_wire(value);
    ASSERT_TRUE(type.has_value());
    EXPECT_EQ(static_cast<std::uint8_t>(*type), value);
    names.insert(to_string(*type));
    const std::size_t size = size_of(*type);
    EXPECT_TRUE(size == 1 || size == 2 || size == 4 || size == 8);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kDataTypeCount));
}

TEST(DataType, RefusesWireValuesOfNoType) {
  for (int value = kDataTypeCount; value < 256; ++value) {
    EXPECT_FALSE(data_type_from_wire(static_cast<std::uint8_t>(value)).has_value());
  }
}

TEST(DataType, SpellsNamesAsTorchDoes) {
  EXPECT_EQ(to_string(DataType::kBfloat16), "bfloat16");
  EXPECT_EQ(to_string(DataType::kInt64), "int64");
  EXPECT_EQ(size_of(DataType::kBfloat16), 2u);
  EXPECT_EQ(size_of(DataType::kInt64), 8u);
}

TEST(DataType, KnowsWhichTypesHaveFractions) {
  EXPECT_TRUE(is_floating(DataType::kFloat16));
  EXPECT_TRUE(is_floating(DataType::kFloat64));
  EXPECT_FALSE(is_floating(DataType::kInt64));
  EXPECT_FALSE(is_floating(DataType::kBool));
}

}  // namespace
}  // namespace fasthorovod::core
