#include "ops/how_to_add.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

using core::DataType;
using core::Reduction;

TEST(HowToAdd, ReducesEveryTypeAsThisProcessWould) {
  constexpr std::array kReductions{Reduction::kAverage, Reduction::kSum, Reduction::kMin,
                                   Reduction::kMax, Reduction::kProduct};
  for (int wire = 0; wire < core::kDataTypeCount; ++wire) {
    const DataType type = *core::data_type_from_wire(static_cast<std::uint8_t>(wire));
    for (const Reduction reduction : kReductions) {
      alignas(8) std::array<std::byte, 64> values;
      values.fill(std::byte{1});
      alignas(8) std::array<std::byte, 64> expected;
      expected.fill(type == DataType::kBool ? std::byte{0} : std::byte{3});
      std::array<std::byte, 64> sum = expected;
      reduce_into(expected.data(), values.data(), 64 / core::size_of(type), type, reduction);
      EXPECT_TRUE(add_as(how_to_add(type, reduction), sum, values));
      EXPECT_EQ(sum, expected) << core::to_string(type) << " " << core::to_string(reduction);
    }
  }
}

TEST(HowToAdd, TouchesNothingWhenItMakesNoSense) {
  std::array<std::byte, 8> sum{};
  const std::array<std::byte, 8> values{std::byte{1}};
  EXPECT_FALSE(add_as(0x01ff, sum, values)) << "no such type";
  EXPECT_FALSE(add_as(0xff01, sum, values)) << "no such reduction";
  const std::uint16_t how = how_to_add(DataType::kInt32, Reduction::kSum);
  EXPECT_FALSE(add_as(how, sum, std::span(values).first(4))) << "another size";
  EXPECT_FALSE(add_as(how, std::span(sum).first(6), std::span(values).first(6))) << "half a value";
  EXPECT_EQ(sum, (std::array<std::byte, 8>{}));
}

}  // namespace
}  // namespace fasthorovod::ops
