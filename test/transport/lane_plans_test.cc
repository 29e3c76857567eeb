#include "transport/lane_plans.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fasthorovod::transport {
namespace {

Member member(const std::string& host, const std::string& real_host, int cores) {
  return {{host, host}, real_host, {}, "", {.flows = 1, .cores = cores}, 16};
}

TEST(LanePlans, ChooseAuxiliariesByTheCoresOfTheRealHost) {
  // Four ranks that pose as two hosts share the 16 cores of one.
  const std::vector<Member> posing{member("a", "x", 16), member("a", "x", 16), member("b", "x", 16),
                                   member("b", "x", 16)};
  EXPECT_EQ(LanePlans(posing, 0).own().auxiliaries, 0);
  const std::vector<Member> apart{member("a", "x", 16), member("a", "x", 16), member("b", "y", 16),
                                  member("b", "y", 16)};
  EXPECT_EQ(LanePlans(apart, 0).own().auxiliaries, 2);
}

TEST(LanePlans, ChooseNoneWhereAllRanksShareMemory) {
  const std::vector<Member> together{member("a", "x", 64), member("a", "x", 64)};
  EXPECT_EQ(LanePlans(together, 0).own(), (core::LanePlan{.lanes = 1, .auxiliaries = 0}));
  EXPECT_EQ(LanePlans(std::vector{member("a", "x", 64)}, 0).own().auxiliaries, 0) << "alone";
}

TEST(LanePlans, CountFlowsAlikeWhereRanksChooseDifferently) {
  const std::vector<Member> unlike{member("a", "x", 64), member("b", "y", 2)};
  const LanePlans many(unlike, 0);
  const LanePlans few(unlike, 1);
  EXPECT_EQ(many.own().lanes, 3);
  EXPECT_EQ(few.own().lanes, 1);
  EXPECT_EQ(many.flows_with(1), 3);
  EXPECT_EQ(few.flows_with(0), 3);
}

}  // namespace
}  // namespace fasthorovod::transport
