#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/fasthorovod-bench/torchrun.h"

namespace fasthorovod::tools {
namespace {

using testing::HasSubstr;

core::Environment as_torchrun() {
  return {{"RANK", "1"},
          {"WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node-a"},
          {"MASTER_PORT", "29500"},
          {"FASTHOROVOD_SECRET_FILE", "secret"}};
}

std::string refusal(const core::Environment& environment) {
  const auto understood = understand_torchrun(environment);
  return understood ? "accepted" : understood.error().message;
}

TEST(BenchTorchrun, SaysWhoTheRankIs) {
  const auto environment = understand_torchrun(as_torchrun()).value();
  EXPECT_EQ(environment.at("FASTHOROVOD_RANK"), "1");
  EXPECT_EQ(environment.at("FASTHOROVOD_SIZE"), "2");
  EXPECT_EQ(environment.at("FASTHOROVOD_RENDEZVOUS"), "node-a:24500");
}

TEST(BenchTorchrun, PutsIpv6InBrackets) {
  core::Environment environment = as_torchrun();
  environment["MASTER_ADDR"] = "fd77::1";
  EXPECT_EQ(understand_torchrun(environment)->at("FASTHOROVOD_RENDEZVOUS"), "[fd77::1]:24500");
}

TEST(BenchTorchrun, NeverListensAtTorchsOwnPort) {
  for (int port = 1; port <= 65535; ++port) {
    ASSERT_NE(torchrun_port(port), port);
    ASSERT_GE(torchrun_port(port), 20000);
    ASSERT_LT(torchrun_port(port), 30000);
  }
}

TEST(BenchTorchrun, GivesWayToNamesOfOurs) {
  for (const char* name : {"FASTHOROVOD_RANK", "FASTHOROVOD_STORE", "HOROVOD_RANK"}) {
    core::Environment environment = as_torchrun();
    environment[name] = "0";
    EXPECT_EQ(understand_torchrun(environment).value(), environment) << name;
  }
  core::Environment environment = as_torchrun();
  environment["FASTHOROVOD_RENDEZVOUS"] = "node-b:1";
  EXPECT_EQ(understand_torchrun(environment)->at("FASTHOROVOD_RENDEZVOUS"), "node-b:1");
}

TEST(BenchTorchrun, IsNotMeantByARankAlone) {
  EXPECT_EQ(understand_torchrun({{"RANK", "3"}})->count("FASTHOROVOD_RANK"), 0U);
}

TEST(BenchTorchrun, SaysWhatIsMissing) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "FASTHOROVOD_SECRET_FILE"}) {
    core::Environment environment = as_torchrun();
    environment.erase(name);
    EXPECT_THAT(refusal(environment), HasSubstr(name));
  }
  core::Environment environment = as_torchrun();
  environment["MASTER_PORT"] = "0";
  EXPECT_THAT(refusal(environment), HasSubstr("1 to 65535"));
}

TEST(BenchTorchrun, NeedsNoSecretForOneRank) {
  EXPECT_TRUE(understand_torchrun({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
}

}  // namespace
}  // namespace fasthorovod::tools
