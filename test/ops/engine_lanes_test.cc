// Engines with several lanes a rank, and with ranks that were told different things: whatever they
// are, all get the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

constexpr int kRanks = 3;

struct Lanes {
  std::optional<int> lanes;
  std::optional<int> flows;
};

/// The results of both doors and a message, one after the other.
Floats all_kinds(Engine& engine) {
  const int rank = engine.world().rank;
  Floats results;
  for (const std::size_t count : {std::size_t{1}, std::size_t{999}, std::size_t{300'007}}) {
    Floats named = numbers_of(rank, count);
    const Floats ordered = numbers_of(rank, count);
    Floats sum(count);
    const auto first = engine.submit(allreduce_of("named." + std::to_string(count), named));
    const auto second = engine.submit_ordered(call(OrderedKind::kAllreduce, ordered, sum));
    expect_success(first);
    expect_success(second);
    append(results, named);
    append(results, sum);
  }
  return results;
}

std::vector<Lanes> everywhere(const Lanes& lanes) { return std::vector<Lanes>(kRanks, lanes); }

/// Says on which host a rank is.
using Placement = std::function<void(core::Config&)>;

/// Runs all of it with lanes chosen by rank; the results of each rank.
std::vector<Floats> results_with(const std::vector<Lanes>& by_rank,
                                 const Placement& place = live_apart) {
  std::vector<Floats> results(kRanks);
  run_as_threads(kRanks,
                 [&](Engine& engine) {
                   results[static_cast<std::size_t>(engine.world().rank)] = all_kinds(engine);
                 },
                 {.adjust = [&](core::Config& config) {
                   const Lanes& own = by_rank[static_cast<std::size_t>(config.rank)];
                   config.lanes = own.lanes;
                   config.flows = own.flows;
                   config.deterministic = true;  // several worlds are compared
                   place(config);
                 }});
  return results;
}

const Floats& expected() {
  static const Floats results = results_with(everywhere({std::nullopt, 1}))[0];
  return results;
}

void expect_the_same_bits(const std::vector<Lanes>& by_rank) {
  for (const Floats& result : results_with(by_rank)) EXPECT_EQ(result, expected());
}

class EngineWithLanes : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Settings, EngineWithLanes,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(1, 2, 3, 4)));

TEST_P(EngineWithLanes, GiveTheSameBitsHoweverMany) {
  const auto [lanes, flows] = GetParam();
  expect_the_same_bits(everywhere({lanes, flows}));
}

TEST(EngineLanes, MayDifferFromRankToRank) {
  expect_the_same_bits({{1, 4}, {3, 1}, {2, 3}});
  expect_the_same_bits({{16, 1}, {1, 1}, {std::nullopt, 4}});
  expect_the_same_bits({{1, std::nullopt}, {2, std::nullopt}, {3, 1}});
}

// The ranks that share a host reduce there first, and what they get opens chunks on the lanes.
TEST(EngineLanes, GiveTheSameBitsBetweenHostsOfSeveralRanks) {
  const Placement two_on_one = [](core::Config& config) {
    config.host_identity = config.rank < 2 ? "left" : "right";
  };
  const Floats single = results_with(everywhere({1, 1}), two_on_one)[0];
  for (const Floats& result : results_with({{3, 2}, {1, 4}, {2, 1}}, two_on_one)) {
    EXPECT_EQ(result, single);
  }
}

TEST(EngineLanes, TellOfTheirFlows) {
  run_as_threads(2,
                 [](Engine& engine) {
                   const LaneReport report = report_of_lanes(engine);
                   EXPECT_EQ(report.plan.lanes, 1);
                   EXPECT_TRUE(report.plan.measures_flows);
                   EXPECT_FALSE(report.reasons.wish.flows);
                   EXPECT_TRUE(report.reasons.around.peers_elsewhere);
                   ASSERT_EQ(report.peers.size(), 1U);
                   EXPECT_EQ(report.peers[0].peer, 1 - engine.world().rank);
                   EXPECT_LE(report.peers[0].flows.size(), 8U);
                   EXPECT_FALSE(report.peers[0].flows.empty());
                 },
                 {.adjust = live_apart});
}

TEST(EngineLanes, CountTheBytesOfAll) {
  run_as_threads(2,
                 [](Engine& engine) {
                   Floats values(1'000'000, 1.0F);
                   expect_success(engine.submit(allreduce_of("all", values)));
                   EXPECT_EQ(values.front(), 2.0F);
                   EXPECT_GE(engine.statistics().bytes_received, values.size() * sizeof(float));
                 },
                 {.adjust = [](core::Config& config) {
                   config.lanes = 3;
                   live_apart(config);
                 }});
}

}  // namespace
}  // namespace fasthorovod::ops::testing
