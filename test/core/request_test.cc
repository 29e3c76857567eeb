#include "core/request.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

TEST(Request, CountsOneElementForAScalar) {
  EXPECT_EQ(element_count({}), 1u);
  EXPECT_EQ(element_count({3, 0, 5}), 0u);
  EXPECT_EQ(element_count({3, 4}), 12u);
}

TEST(Request, CountsBytesByType) {
  Request request;
  request.shape = {3, 4};
  request.type = DataType::kFloat16;
  EXPECT_EQ(byte_count(request), 24u);
}

TEST(Request, RefusesShapesThatCannotTravel) {
  EXPECT_TRUE(is_valid_shape({}));
  EXPECT_TRUE(is_valid_shape({0, 7}));
  EXPECT_TRUE(is_valid_shape({std::int64_t{1} << 48}));
  EXPECT_FALSE(is_valid_shape({-1}));
  EXPECT_FALSE(is_valid_shape({std::int64_t{1} << 48, 2}));
  EXPECT_FALSE(is_valid_shape({std::int64_t{1} << 62, std::int64_t{1} << 62}));
  EXPECT_FALSE(is_valid_shape({0, std::int64_t{1} << 62}));
  EXPECT_TRUE(is_valid_shape(std::vector<std::int64_t>(kMaxDimensions, 1)));
  EXPECT_FALSE(is_valid_shape(std::vector<std::int64_t>(kMaxDimensions + 1, 1)));
}

TEST(Request, TakesTheRanksOfAGroupInAscendingOrder) {
  EXPECT_TRUE(is_ascending({}));
  EXPECT_TRUE(is_ascending({0, 3, 4}));
  EXPECT_FALSE(is_ascending({3, 0}));
  EXPECT_FALSE(is_ascending({0, 0}));
  EXPECT_FALSE(is_ascending({-1, 0}));
}

TEST(Request, KnowsOperationsByWireValue) {
  for (std::uint8_t value = 0; value < 7; ++value) {
    EXPECT_TRUE(op_kind_from_wire(value).has_value());
    EXPECT_NE(to_string(*op_kind_from_wire(value)), "unknown operation");
  }
  EXPECT_FALSE(op_kind_from_wire(7).has_value());
}

TEST(Reduction, KnowsReductionsByWireValue) {
  for (int value = 0; value < 256; ++value) {
    const auto reduction = reduction_from_wire(static_cast<std::uint8_t>(value));
    const bool exists = value <= 8 && value != 2;
    EXPECT_EQ(reduction.has_value(), exists) << value;
    if (exists) {
      EXPECT_NE(to_string(*reduction), "unknown reduction");
    }
  }
}

TEST(Reduction, OfBitsIsForTypesWithoutFractions) {
  for (const Reduction reduction : kAllReductions) {
    EXPECT_TRUE(has_reduction(DataType::kBool, reduction));
    EXPECT_TRUE(has_reduction(DataType::kInt64, reduction));
  }
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat64}) {
    EXPECT_TRUE(has_reduction(type, Reduction::kMax));
    EXPECT_FALSE(has_reduction(type, Reduction::kBitAnd));
    EXPECT_FALSE(has_reduction(type, Reduction::kBitOr));
    EXPECT_FALSE(has_reduction(type, Reduction::kBitXor));
  }
}

}  // namespace
}  // namespace fasthorovod::core
