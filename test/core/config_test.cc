#include "core/config.h"

#include <gtest/gtest.h>

#include <set>

namespace fasthorovod::core {
namespace {

using std::chrono::milliseconds;

Config parsed(const Environment& environment) {
  auto result = parse_config(environment);
  if (result) return result->config;
  ADD_FAILURE() << result.error().message;
  return {};
}

std::string refusal(const Environment& environment) {
  const auto result = parse_config(environment);
  if (result) return "(accepted)";
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  return result.error().message;
}

std::vector<std::string> warnings(const Environment& environment) {
  const auto result = parse_config(environment);
  EXPECT_TRUE(result.has_value());
  return result ? result->warnings : std::vector<std::string>{};
}

bool accepts(const std::string& name, const std::string& value) {
  return parse_config({{name, value}}).has_value();
}

const std::string kJob = "0123456789abcdefABCDEF0123456789";

Environment job_of(const std::string& rank, const std::string& size) {
  return {{"FASTHOROVOD_RANK", rank},
          {"FASTHOROVOD_SIZE", size},
          {"FASTHOROVOD_STORE", "node-a:4000"},
          {"FASTHOROVOD_SECRET_FILE", "/run/secret"}};
}

TEST(Config, IsAWorldOfOneWithoutAnything) {
  const Config config = parsed({});
  EXPECT_EQ(config.rank, 0);
  EXPECT_EQ(config.size, 1);
  EXPECT_FALSE(config.lanes);
  EXPECT_FALSE(config.auxiliaries);
  EXPECT_FALSE(config.flows);
  EXPECT_EQ(config.arena_mb, 1024);
  EXPECT_EQ(config.log_level, LogLevel::kWarning);
}

TEST(Config, FillsEveryFieldFromItsVariable) {
  Environment environment = job_of("3", "8");
  environment.insert({{"FASTHOROVOD_JOB", kJob},
                      {"FASTHOROVOD_HOST_IDENTITY", "left"},
                      {"FASTHOROVOD_NETWORK_INTERFACE", "eth0,10.0.0.0/8"},
                      {"FASTHOROVOD_START_TIMEOUT", "2.5"},
                      {"FASTHOROVOD_STALL_CHECK_TIME_SECONDS", "5"},
                      {"FASTHOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "0"},
                      {"FASTHOROVOD_LANES", "5"},
                      {"FASTHOROVOD_AUX", "3"},
                      {"FASTHOROVOD_AUX_PINNING", "5,1-2"},
                      {"FASTHOROVOD_FLOWS", "16"},
                      {"FASTHOROVOD_ARENA_MB", "256"},
                      {"FASTHOROVOD_FLOW_RATE", "200mbit"},
                      {"FASTHOROVOD_TCP_CONGESTION", "cubic"},
                      {"FASTHOROVOD_ALLREDUCE", "two-hop-allreduce"},
                      {"FASTHOROVOD_FUSION_THRESHOLD", "1024"},
                      {"FASTHOROVOD_CACHE_CAPACITY", "7"},
                      {"FASTHOROVOD_LOG_LEVEL", "Debug"}});
  const Config config = parsed(environment);
  EXPECT_EQ(config.rank, 3);
  EXPECT_EQ(config.size, 8);
  EXPECT_EQ(config.store, "node-a:4000");
  EXPECT_EQ(config.secret_file, "/run/secret");
  EXPECT_EQ(config.job, kJob);
  EXPECT_EQ(config.host_identity, "left");
  EXPECT_EQ(config.network_interface, "eth0,10.0.0.0/8");
  EXPECT_EQ(config.start_timeout, milliseconds(2500));
  EXPECT_EQ(config.stall_warning, milliseconds(5000));
  EXPECT_EQ(config.stall_limit, milliseconds(0));
  EXPECT_EQ(config.lanes, 5);
  EXPECT_EQ(config.auxiliaries, 3);
  EXPECT_EQ(config.aux_pinning,
            (AuxPinning{.kind = AuxPinning::Kind::kList, .processors = {5, 1, 2}}));
  EXPECT_EQ(config.flows, 16);
  EXPECT_EQ(config.arena_mb, 256);
  EXPECT_EQ(config.flow_rate, 25'000'000u);
  EXPECT_EQ(config.tcp_congestion, "cubic");
  EXPECT_EQ(config.allreduce, AllreduceAlgorithm::kTwoHop);
  EXPECT_EQ(config.fusion_threshold, 1024u);
  EXPECT_EQ(config.cache_capacity, 7u);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_TRUE(warnings(environment).empty());
}

TEST(Config, KeepsBoundsOfEveryNumber) {
  struct Bounds {
    std::string name;
    std::vector<std::string> good;
    std::vector<std::string> bad;
  };
  const std::vector<Bounds> all{
      {"FASTHOROVOD_START_TIMEOUT", {"0.1", "86400"}, {"0", "86401", "-1", "nan", "inf", "1s"}},
      {"FASTHOROVOD_STALL_CHECK_TIME_SECONDS", {"0", "1000000"}, {"-1", "1000001", "x"}},
      {"FASTHOROVOD_STALL_SHUTDOWN_TIME_SECONDS", {"0", "1000000"}, {"-1", "1000001", "x"}},
      {"FASTHOROVOD_LANES", {"1", "16", "auto"}, {"0", "17", "-1", "two"}},
      {"FASTHOROVOD_AUX", {"0", "16", "auto"}, {"17", "-1", "none"}},
      {"FASTHOROVOD_AUX_PINNING", {"auto", "none", "3", "4-7,12"}, {"all", "4,", "7-4", "4,4-5"}},
      {"FASTHOROVOD_ARENA_MB", {"16", "1048576"}, {"15", "1048577", "1GB", "auto"}},
      {"FASTHOROVOD_FLOWS", {"1", "64", "auto"}, {"0", "65", "-1", "4.0", "Auto", "99999999999"}},
      {"FASTHOROVOD_FLOW_RATE", {"0", "200mbit", "25MB"}, {"200", "mbit", "25mb", "-1mbit"}},
      {"FASTHOROVOD_TCP_CONGESTION",
       {"reno", "bbr2", "dctcp-x"},
       {"a b", "of_sixteen_chars", "-;"}},
      {"FASTHOROVOD_ALLREDUCE",
       {"auto", "ring-allreduce", "one-hop-allreduce"},
       {"ring", "Auto", "direct-allgather"}},
      {"FASTHOROVOD_DETERMINISTIC", {"0", "1"}, {"yes", "-1"}},
      {"FASTHOROVOD_FUSION_THRESHOLD", {"0", "17179869184"}, {"-1", "17179869185", "64MB"}},
      {"FASTHOROVOD_CACHE_CAPACITY", {"0", "262144"}, {"-1", "262145", " 1"}},
      {"FASTHOROVOD_LOG_LEVEL", {"trace", "OFF"}, {"loud", "2"}},
      {"FASTHOROVOD_REQUIRE_SECRET", {"0", "1"}, {"yes", "2", "-1"}},
      {"FASTHOROVOD_JOB", {kJob}, {"abc", kJob + "0", "x" + kJob.substr(1)}},
      {"FASTHOROVOD_HOST_IDENTITY", {"anything at all"}, {}},
      {"FASTHOROVOD_NETWORK_INTERFACE", {"eth0"}, {}},
      {"FASTHOROVOD_SECRET_FILE", {"/a/b"}, {}},
  };
  for (const Bounds& row : all) {
    for (const std::string& value : row.good) EXPECT_TRUE(accepts(row.name, value)) << value;
    for (const std::string& value : row.bad) {
      const std::string message = refusal({{row.name, value}});
      EXPECT_NE(message.find(row.name + "=\"" + value + "\""), std::string::npos) << message;
    }
  }
}

TEST(Config, SaysWhichNameIsMeant) {
  EXPECT_EQ(refusal({{"FASTHOROVOD_ALLREDUCE", "ring-allreduct"}}),
            "FASTHOROVOD_ALLREDUCE=\"ring-allreduct\" is not allowed: it takes auto, "
            "ring-allreduce, two-hop-allreduce or one-hop-allreduce; did you mean "
            "ring-allreduce?");
  EXPECT_EQ(parsed({{"FASTHOROVOD_ALLREDUCE", "auto"}}).allreduce, std::nullopt);
}

TEST(Config, SaysWhatIsAllowedWhenItRefuses) {
  EXPECT_EQ(refusal({{"FASTHOROVOD_FLOWS", "65"}}),
            "FASTHOROVOD_FLOWS=\"65\" is not allowed: it takes 1 to 64, or auto");
}

TEST(Config, RefusesMoreAuxiliariesThanLanes) {
  EXPECT_EQ(refusal({{"FASTHOROVOD_LANES", "2"}, {"FASTHOROVOD_AUX", "3"}}),
            "FASTHOROVOD_AUX=\"3\" is more than FASTHOROVOD_LANES=\"2\": auxiliary processes run "
            "some of the lanes");
  EXPECT_EQ(parsed({{"FASTHOROVOD_LANES", "2"}, {"FASTHOROVOD_AUX", "2"}}).auxiliaries, 2);
  EXPECT_EQ(parsed({{"FASTHOROVOD_LANES", "auto"}, {"FASTHOROVOD_AUX", "16"}}).auxiliaries, 16);
}

TEST(Config, ChecksAddresses) {
  for (const char* good : {"node:1", "10.0.0.1:65535", "[::1]:80"}) {
    Environment environment = job_of("0", "2");
    environment["FASTHOROVOD_STORE"] = good;
    EXPECT_EQ(parsed(environment).store, good);
  }
  for (const char* bad : {"node", ":80", "node:", "node:0", "node:65536", "::1:80", "[]:80"}) {
    Environment environment = job_of("0", "2");
    environment["FASTHOROVOD_STORE"] = bad;
    EXPECT_NE(refusal(environment).find("host:port"), std::string::npos) << bad;
  }
}

TEST(Config, RefusesHalfAnIdentityAndNamesWhatIsMissing) {
  const std::vector<std::string> needed{"FASTHOROVOD_RANK", "FASTHOROVOD_SIZE", "FASTHOROVOD_STORE",
                                        "FASTHOROVOD_SECRET_FILE"};
  for (const std::string& name : needed) {
    Environment environment = job_of("1", "2");
    environment.erase(name);
    const std::string message = refusal(environment);
    EXPECT_NE(message.find(name + " "), std::string::npos) << message;
    EXPECT_NE(message.find("is not set"), std::string::npos) << message;
  }
  EXPECT_NE(refusal({{"FASTHOROVOD_RENDEZVOUS", "a:1"}}).find("FASTHOROVOD_RANK is not set"),
            std::string::npos);
}

TEST(Config, RefusesARankOutsideTheJob) {
  EXPECT_EQ(refusal(job_of("2", "2")),
            "FASTHOROVOD_RANK=\"2\" is not allowed: it takes 0 to 1 in a job of 2");
  EXPECT_NE(refusal(job_of("0", "0")).find("FASTHOROVOD_SIZE"), std::string::npos);
  EXPECT_NE(refusal(job_of("-1", "2")).find("FASTHOROVOD_RANK"), std::string::npos);
}

TEST(Config, NeedsNoSecretInAWorldOfOne) {
  const Config config = parsed({{"FASTHOROVOD_RANK", "0"}, {"FASTHOROVOD_SIZE", "1"}});
  EXPECT_EQ(config.size, 1);
}

TEST(Config, TakesHorovodsNamesWhereItHasThem) {
  const Config config = parsed({{"HOROVOD_FUSION_THRESHOLD", "5"},
                                {"HOROVOD_CACHE_CAPACITY", "6"},
                                {"HOROVOD_STALL_CHECK_TIME_SECONDS", "7"},
                                {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "8"},
                                {"HOROVOD_START_TIMEOUT", "9"},
                                {"HOROVOD_GLOO_IFACE", "eth1"},
                                {"HOROVOD_LOG_LEVEL", "fatal"}});
  EXPECT_EQ(config.fusion_threshold, 5u);
  EXPECT_EQ(config.cache_capacity, 6u);
  EXPECT_EQ(config.stall_warning, milliseconds(7000));
  EXPECT_EQ(config.stall_limit, milliseconds(8000));
  EXPECT_EQ(config.start_timeout, milliseconds(9000));
  EXPECT_EQ(config.network_interface, "eth1");
  EXPECT_EQ(config.log_level, LogLevel::kOff);
  EXPECT_NE(refusal({{"HOROVOD_CACHE_CAPACITY", "x"}}).find("HOROVOD_CACHE_CAPACITY=\"x\""),
            std::string::npos);
}

TEST(Config, PrefersOurNameAndSaysSo) {
  const Environment both{{"FASTHOROVOD_CACHE_CAPACITY", "1"}, {"HOROVOD_CACHE_CAPACITY", "2"}};
  EXPECT_EQ(parsed(both).cache_capacity, 1u);
  ASSERT_EQ(warnings(both).size(), 1u);
  EXPECT_EQ(warnings(both)[0],
            "FASTHOROVOD_CACHE_CAPACITY and HOROVOD_CACHE_CAPACITY are both set; "
            "FASTHOROVOD_CACHE_CAPACITY wins");
}

TEST(Config, TakesHorovodsIdentityOnlyWithAMeetingPoint) {
  Environment horovod{{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "4"}};
  EXPECT_EQ(parsed(horovod).size, 1);
  horovod["FASTHOROVOD_RENDEZVOUS"] = "node-a:4000";
  horovod["FASTHOROVOD_SECRET_FILE"] = "/run/secret";
  EXPECT_EQ(parsed(horovod).rank, 1);
  EXPECT_EQ(parsed(horovod).size, 4);
  EXPECT_EQ(parsed(horovod).rendezvous, "node-a:4000");
  horovod["FASTHOROVOD_RANK"] = "0";
  EXPECT_NE(refusal(horovod).find("FASTHOROVOD_SIZE is not set"), std::string::npos);
  horovod["FASTHOROVOD_SIZE"] = "2";
  EXPECT_EQ(parsed(horovod).rank, 0);
  EXPECT_TRUE(warnings(horovod).empty());
}

TEST(Config, PrefersTheStoreToTheRendezvous) {
  Environment environment = job_of("0", "2");
  environment["FASTHOROVOD_RENDEZVOUS"] = "node-b:1";
  EXPECT_EQ(parsed(environment).rendezvous, "");
  EXPECT_EQ(warnings(environment).size(), 1u);
}

TEST(Config, WarnsAboutUnknownNamesWithTheNearest) {
  EXPECT_EQ(warnings({{"FASTHOROVOD_FLOW", "1"}}),
            (std::vector<std::string>{
                "FASTHOROVOD_FLOW is not a setting; did you mean FASTHOROVOD_FLOWS?"}));
  EXPECT_EQ(warnings({{"FASTHOROVOD_UNLIKE_ANYTHING", "1"}}),
            (std::vector<std::string>{"FASTHOROVOD_UNLIKE_ANYTHING is not a setting"}));
  EXPECT_TRUE(warnings({{"HOROVOD_TIMELINE", "DYNAMIC"}, {"OTHER", "1"}}).empty());
}

TEST(Config, LeavesToMpiWhatItCarries) {
  EXPECT_EQ(parsed({}).data_plane, DataPlane::kTcp);
  EXPECT_EQ(parsed({{"FASTHOROVOD_DATA_PLANE", "tcp"}}).data_plane, DataPlane::kTcp);
  EXPECT_FALSE(accepts("FASTHOROVOD_DATA_PLANE", "rdma"));
  const Environment environment{{"FASTHOROVOD_DATA_PLANE", "mpi"},
                                {"FASTHOROVOD_AUX", "2"},
                                {"FASTHOROVOD_LANES", "3"},
                                {"FASTHOROVOD_FLOW_RATE", "1gbit"}};
  const Config config = parsed(environment);
  EXPECT_EQ(config.data_plane, DataPlane::kMpi);
  EXPECT_EQ(config.lanes, 1);
  EXPECT_EQ(config.auxiliaries, 0);
  EXPECT_EQ(config.flows, 1);
  EXPECT_EQ(config.flow_rate, 0U);
  EXPECT_EQ(warnings(environment).size(), 3U);
}

TEST(Config, FusesNothingByTimeWhereResultsMustRepeat) {
  const Environment alone{{"FASTHOROVOD_DETERMINISTIC", "1"}};
  EXPECT_TRUE(parsed(alone).deterministic);
  EXPECT_EQ(parsed(alone).fusion_threshold, 0U);
  EXPECT_TRUE(warnings(alone).empty());
  Environment both = alone;
  both["HOROVOD_FUSION_THRESHOLD"] = "1024";
  EXPECT_EQ(parsed(both).fusion_threshold, 0U);
  ASSERT_EQ(warnings(both).size(), 1U);
  EXPECT_TRUE(warnings(both).front().starts_with("HOROVOD_FUSION_THRESHOLD means nothing"));
}

TEST(Config, TreatsAnEmptyVariableAsUnset) { EXPECT_TRUE(accepts("FASTHOROVOD_FLOWS", "")); }

TEST(Config, DescribesEverySettingOnce) {
  std::set<std::string_view> names;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(setting.name.starts_with("FASTHOROVOD_"));
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_FALSE(setting.allowed.empty()) << setting.name;
    EXPECT_FALSE(setting.meaning.empty()) << setting.name;
  }
  EXPECT_EQ(names.size(), 26u);
}

TEST(Config, ReadsTheEnvironmentOfThisProcess) {
  const Environment environment = process_environment();
  EXPECT_TRUE(environment.contains("PATH"));
}

TEST(Rate, ReadsBitsAndBytesASecond) {
  const std::vector<std::pair<std::string, BytesPerSecond>> good{{"0", 0},
                                                                 {"800bit", 100},
                                                                 {"1kbit", 125},
                                                                 {"200Mbit", 25'000'000},
                                                                 {"1.5gbit", 187'500'000},
                                                                 {"25MB", 25'000'000},
                                                                 {"3B", 3},
                                                                 {"1GB", 1'000'000'000}};
  for (const auto& [text, rate] : good) {
    const auto result = parse_rate(text);
    ASSERT_TRUE(result.has_value()) << text;
    EXPECT_EQ(*result, rate) << text;
  }
  for (const char* bad : {"", "1", "bit", "1mbps", "1mb", "-1bit", "1 mbit", "1e3bit", "9999999TB",
                          "1bit", "1..5mbit"}) {
    EXPECT_FALSE(parse_rate(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace fasthorovod::core
