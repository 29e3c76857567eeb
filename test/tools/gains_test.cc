#include "tools/fasthorovod-bench/gains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/fasthorovod-bench/command_line.h"

namespace fasthorovod::tools {
namespace {

using ::testing::HasSubstr;

TEST(Gains, AreATableOfEveryLinkRankCountAndKindOfTensor) {
  const std::string table = gains_table(core::typical_costs());
  EXPECT_EQ(std::ranges::count(table, '\n'), 2 + 3 * 4 * 2);
  for (const char* row : {"| 10 | 1 | arena |", "| 25 | 4 | ordinary |", "| 100 | 8 | arena |"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
}

TEST(Gains, FillASlowLinkWithoutAuxiliaries) {
  core::LaneCosts fast = core::typical_costs();
  fast.alone.close = fast.alone.far = {.send = 0.1, .receive = 0.1};
  EXPECT_THAT(gains_table(fast), HasSubstr("| 10 | 1 | arena | 10.0 | 10.0 | 10.0 | 10.0 | 0 |"));
}

TEST(Gains, GrowWithAuxiliariesOnAFastLink) {
  core::LaneCosts slow{};
  // A gigabyte a second and core: 8 Gbit/s.
  slow.alone.close = slow.alone.far = {.send = 0.5, .receive = 0.5, .receive_scratch = 0.5};
  slow.share = 0.5;
  const std::string table = gains_table(slow);
  EXPECT_THAT(table, HasSubstr("| 100 | 1 | arena | 8.0 | 16.0 | 24.0 | 40.0 | 4 |"));
  EXPECT_THAT(table, HasSubstr("| 100 | 4 | arena | 32.0 | 48.0 | 64.0 | 96.0 | 0 |"))
      << "without a core of their own";
}

TEST(PlacementCommandLine, HasTheDefaultsOfItsHelp) {
  const auto line = parse_bench_command_line({"placement"});
  ASSERT_TRUE(line);
  ASSERT_TRUE(line->placement.has_value());
  EXPECT_EQ(line->placement->rounds, 10);
  EXPECT_EQ(line->placement->time_ms, 200);
  EXPECT_FALSE(line->placement->fresh);
  EXPECT_FALSE(line->placement->model);
}

TEST(PlacementCommandLine, TakesItsOptions) {
  const auto line = parse_bench_command_line(
      {"placement", "--rounds", "2", "--time", "50", "--fresh", "--model", "--json"});
  ASSERT_TRUE(line && line->placement);
  EXPECT_EQ(line->placement->rounds, 2);
  EXPECT_EQ(line->placement->time_ms, 50);
  EXPECT_TRUE(line->placement->fresh && line->placement->model && line->placement->json);
  EXPECT_FALSE(parse_bench_command_line({"placement", "--rounds", "0"}));
  EXPECT_FALSE(parse_bench_command_line({"allreduce"}).value().placement.has_value());
}

}  // namespace
}  // namespace fasthorovod::tools
