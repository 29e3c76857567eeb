// Engines whose lanes run in auxiliary processes: the same bits, and nothing is left of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "test/ops/aux_children.h"
#include "test/ops/ordered_calls.h"
#include "transport/own_processors.h"

namespace fasthorovod::ops::testing {
namespace {

constexpr int kRanks = 3;

/// Both doors; tensors alone (in private memory) and fused (in the arena).
Floats all_kinds(Engine& engine) {
  const int rank = engine.world().rank;
  Floats results;
  for (const std::size_t count : {std::size_t{1}, std::size_t{999}, std::size_t{300'007}}) {
    Floats named = numbers_of(rank, count);
    Floats fused = numbers_of(rank + 7, count);
    const Floats ordered = numbers_of(rank, count);
    Floats sum(count);
    auto members = engine.submit_bundle("bundle." + std::to_string(count),
                                        {allreduce_of("a." + std::to_string(count), named),
                                         allreduce_of("b." + std::to_string(count), fused)});
    EXPECT_TRUE(members) << members.error().message;
    const auto last = engine.submit_ordered(call(OrderedKind::kAllreduce, ordered, sum));
    for (const Handle& member : *members) EXPECT_TRUE(member.wait());
    expect_success(last);
    append(results, named);
    append(results, fused);
    append(results, sum);
  }
  return results;
}

std::vector<Floats> results_with(int lanes, int auxiliaries, int arena_mb = 256,
                                 std::optional<int> flows = 2) {
  std::vector<Floats> results(kRanks);
  run_as_threads(kRanks,
                 [&](Engine& engine) {
                   results[static_cast<std::size_t>(engine.world().rank)] = all_kinds(engine);
                 },
                 {.adjust = [&](core::Config& config) {
                   live_apart(config);
                   config.lanes = lanes;
                   config.auxiliaries = auxiliaries;
                   config.flows = flows;
                   config.arena_mb = arena_mb;
                   config.deterministic = true;  // several worlds are compared
                 }});
  return results;
}

class EngineAuxiliaries : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  void SetUp() override { put_auxiliary_on_path(); }
};
INSTANTIATE_TEST_SUITE_P(Settings, EngineAuxiliaries,
                         ::testing::Values(std::tuple{1, 1}, std::tuple{2, 1}, std::tuple{2, 2},
                                           std::tuple{4, 2}));

TEST_P(EngineAuxiliaries, GiveTheSameBitsAsThreads) {
  const Floats expected = results_with(1, 0)[0];
  const auto [lanes, auxiliaries] = GetParam();
  for (const Floats& result : results_with(lanes, auxiliaries)) EXPECT_TRUE(result == expected);
}

TEST_P(EngineAuxiliaries, GiveTheSameBitsWhenTheArenaHoldsLittleMoreThanTheirStaging) {
  const Floats expected = results_with(1, 0)[0];
  const auto [lanes, auxiliaries] = GetParam();
  for (const Floats& result : results_with(lanes, auxiliaries, 16)) EXPECT_TRUE(result == expected);
}

TEST_P(EngineAuxiliaries, GiveTheSameBitsWhereTheNumberOfFlowsIsFound) {
  const Floats expected = results_with(1, 0)[0];
  const auto [lanes, auxiliaries] = GetParam();
  for (const Floats& result : results_with(lanes, auxiliaries, 256, std::nullopt)) {
    EXPECT_TRUE(result == expected);
  }
}

// None of the lanes is a thread.
TEST(EngineAux, TellOfTheirFlows) {
  put_auxiliary_on_path();
  run_as_threads(2,
                 [](Engine& engine) {
                   const LaneReport report = report_of_lanes(engine);
                   EXPECT_EQ(report.plan.auxiliaries, 2);
                   EXPECT_TRUE(report.plan.measures_flows);
                   ASSERT_EQ(report.peers.size(), 1U);
                   EXPECT_EQ(report.peers[0].peer, 1 - engine.world().rank);
                   EXPECT_TRUE(report.peers[0].measures);
                   ASSERT_FALSE(report.peers[0].flows.empty());
                   EXPECT_TRUE(report.peers[0].flows.front().in_use);
                 },
                 {.adjust = [](core::Config& config) {
                   live_apart(config);
                   config.lanes = 2;
                   config.auxiliaries = 2;
                 }});
}

std::size_t descriptors() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

std::size_t threads() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

TEST(EngineAux, LeaveNothingAfterAHundredStarts) {
  put_auxiliary_on_path();
  const auto once = [] {
    run_as_threads(2,
                   [](Engine& engine) {
                     Floats values(10, 1.0F);
                     expect_success(engine.submit(allreduce_of("w", values)));
                     EXPECT_EQ(values.front(), 2.0F);
                   },
                   {.adjust = [](core::Config& config) {
                     live_apart(config);
                     config.lanes = 1;
                     config.auxiliaries = 1;
                     config.flows = 1;
                   }});
  };
  once();
  const auto processes = auxiliaries_of(getpid());
  EXPECT_GE(processes.size(), 2U);
  const std::size_t descriptors_before = descriptors();
  const std::size_t threads_before = threads();
  for (int i = 0; i < 100; ++i) once();
  EXPECT_EQ(auxiliaries_of(getpid()), processes) << "they are used again";
  EXPECT_EQ(descriptors(), descriptors_before);
  EXPECT_EQ(threads(), threads_before);
}

TEST(EngineAux, AreRefusedWithASentenceWhenTheProgramIsMissing) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  core::Config config;
  config.auxiliaries = 16;  // more than the pool has
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  const auto engine = Engine::start(config, 0, log);
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, core::ErrorCode::kUnavailable);
  EXPECT_THAT(engine.error().message,
              ::testing::HasSubstr("FASTHOROVOD_AUX=\"16\" on rank 0: the program "
                                   "fasthorovod-aux is missing"));
}

TEST(EngineAux, AreRefusedWithASentenceWhereTheyCanNotRun) {
  put_auxiliary_on_path();
  core::Config config;
  config.auxiliaries = 1;
  config.aux_pinning = {.kind = core::AuxPinning::Kind::kList, .processors = {1023}};
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  const auto engine = Engine::start(config, 0, log);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_THAT(
      engine.error().message,
      ::testing::HasSubstr("FASTHOROVOD_AUX_PINNING=\"1023\": this process may not run on"));
}

TEST(EngineAux, RunOnTheListedProcessorsAndGiveThemBack) {
  put_auxiliary_on_path();
  std::vector<std::string> lines;
  core::Log log(core::LogLevel::kInfo,
                [&lines](core::LogLevel, std::string_view line) { lines.emplace_back(line); });
  core::Config config;
  config.auxiliaries = 1;
  config.aux_pinning = {.kind = core::AuxPinning::Kind::kList,
                        .processors = transport::own_processors().usable};
  for (int start = 0; start < 2; ++start) {
    lines.clear();
    const auto engine = Engine::start(config, static_cast<std::uint32_t>(start), log);
    ASSERT_TRUE(engine) << engine.error().message;
    EXPECT_THAT(lines,
                ::testing::Contains(::testing::HasSubstr("auxiliary 0 runs on processors ")));
  }
}

}  // namespace
}  // namespace fasthorovod::ops::testing
