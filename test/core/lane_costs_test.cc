#include "core/lane_costs.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

LaneCosts everything() {
  LaneCosts costs = typical_costs();
  costs.busy = costs.alone;
  costs.busy->far.send = 0.1 + 0.2;  // no short decimal
  costs.hungry = QueueCosts{};
  costs.hungry->close.copy = 1e-9;
  return costs;
}

TEST(LaneCosts, ReadBackAsTheyWereWritten) {
  EXPECT_EQ(costs_from_text(to_text(typical_costs())), typical_costs());
  EXPECT_EQ(costs_from_text(to_text(everything())), everything());
}

TEST(LaneCosts, AreRefusedWhenCutOff) {
  const std::string text = to_text(everything());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(costs_from_text(text.substr(0, size)), std::nullopt) << size;
  }
}

TEST(LaneCosts, AreRefusedWithWhatNobodyWrote) {
  const std::string text = to_text(typical_costs());
  EXPECT_EQ(costs_from_text(text + "share 0.5\n"), std::nullopt) << "twice";
  EXPECT_EQ(costs_from_text(text + "other 0.5\n"), std::nullopt);
  EXPECT_EQ(costs_from_text(text + "\n"), std::nullopt);
  EXPECT_EQ(costs_from_text(text + "busy.close.send 0.5\n"), std::nullopt) << "one of many";
  std::string negative = text;
  negative.replace(negative.find("0.11"), 4, "-0.1");
  EXPECT_EQ(costs_from_text(negative), std::nullopt);
}

}  // namespace
}  // namespace fasthorovod::core
