#include "core/fusion_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fasthorovod::core {
namespace {

using Operations = std::vector<std::vector<std::size_t>>;

FusionUnit unit(std::uint64_t bytes, DataType type = DataType::kFloat32) {
  FusionUnit result;
  result.key.type = type;
  result.bytes = bytes;
  return result;
}

TEST(FusionPlanner, FillsAnOperationUpToTheThreshold) {
  EXPECT_EQ(plan_fusion(std::vector{unit(4), unit(4), unit(2), unit(1)}, 10),
            (Operations{{0, 1, 2}, {3}}));
}

TEST(FusionPlanner, PassesByWhatDoesNotFit) {
  EXPECT_EQ(plan_fusion(std::vector{unit(6), unit(6), unit(4), unit(4)}, 10),
            (Operations{{0, 2}, {1, 3}}));
}

TEST(FusionPlanner, KeepsKindsApartAndLooksPastThem) {
  const std::vector units{unit(1), unit(1, DataType::kInt32), unit(1), unit(1, DataType::kInt32)};
  EXPECT_EQ(plan_fusion(units, 10), (Operations{{0, 2}, {1, 3}}));
}

TEST(FusionPlanner, KeepsEveryPartOfTheKeyApart) {
  std::vector<FusionUnit> units(8, unit(1));
  units[1].key.group = 1;
  units[2].key.reduction = Reduction::kMax;
  units[3].key.prescale = 2;
  units[4].key.postscale = 2;
  units[5].key.codec = {CodecId::kTwobit, 0.5F};
  units[6].key.codec = {CodecId::kTwobit, 0.25F};
  units[7].fusable = false;
  EXPECT_EQ(plan_fusion(units, 10).size(), 8u);
}

TEST(FusionPlanner, LeavesAloneWhatIsLargerThanTheThreshold) {
  EXPECT_EQ(plan_fusion(std::vector{unit(1), unit(11), unit(1)}, 10), (Operations{{0, 2}, {1}}));
}

TEST(FusionPlanner, FusesNothingAtThresholdZero) {
  EXPECT_EQ(plan_fusion(std::vector{unit(0), unit(0), unit(1)}, 0), (Operations{{0}, {1}, {2}}));
}

TEST(FusionPlanner, TakesEmptyTensorsAlong) {
  EXPECT_EQ(plan_fusion(std::vector{unit(10), unit(0), unit(0)}, 10), (Operations{{0, 1, 2}}));
}

TEST(FusionPlanner, PutsEveryUnitIntoOneOperationWithinTheThreshold) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<FusionUnit> units;
    for (std::size_t i = random() % 200; i > 0; --i) {
      units.push_back(unit(random() % 120, random() % 2 == 0 ? DataType::kInt8 : DataType::kInt16));
      units.back().fusable = random() % 10 != 0;
    }
    std::vector<int> times(units.size());
    for (const auto& operation : plan_fusion(units, 100)) {
      std::uint64_t bytes = 0;
      for (const std::size_t i : operation) {
        ++times[i];
        bytes += units[i].bytes;
        EXPECT_EQ(units[i].key, units[operation.front()].key);
      }
      EXPECT_TRUE(bytes <= 100 || operation.size() == 1);
      EXPECT_TRUE(std::is_sorted(operation.begin(), operation.end()));
    }
    EXPECT_EQ(times, std::vector<int>(units.size(), 1));
  }
}

}  // namespace
}  // namespace fasthorovod::core
