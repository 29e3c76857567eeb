#include "tools/fasthorovodrun/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fasthorovod::tools {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(WorkerEnvironment, KeepsWhatItDoesNotReplaceByteForByte) {
  const std::vector<std::string> inherited{
      "A=1", "B=x=y\n\xff", "no equals sign", "HOROVOD_RANK=9", "HOROVOD_RANK_OTHER=1", "=odd"};
  EXPECT_THAT(worker_environment(inherited, {{"HOROVOD_RANK", "0"}}),
              ElementsAre("A=1", "B=x=y\n\xff", "no equals sign", "HOROVOD_RANK_OTHER=1", "=odd",
                          "HOROVOD_RANK=0"));
}

TEST(WorkerEnvironment, DropsAnotherWayOfMeeting) {
  EXPECT_THAT(worker_environment({"FASTHOROVOD_RENDEZVOUS=a:1"}, {}), ElementsAre());
}

TEST(RankVariables, NameThePlaceTheJobAndTheOptions) {
  const Place place{.rank = 3,
                    .size = 4,
                    .local_rank = 1,
                    .local_size = 2,
                    .cross_rank = 1,
                    .cross_size = 2,
                    .host = "virtual-1"};
  Options options;
  options.virtual_hosts = 2;
  options.virtual_rate = "1gbit";
  options.start_timeout_s = 5;
  const Overrides variables = rank_variables(place, {"127.0.0.1:1", "/proc/1/fd/3", "ab"}, options);
  EXPECT_THAT(variables, Contains(Pair("FASTHOROVOD_RANK", "3")));
  EXPECT_THAT(variables, Contains(Pair("HOROVOD_LOCAL_RANK", "1")));
  EXPECT_THAT(variables, Contains(Pair("HOROVOD_CROSS_SIZE", "2")));
  EXPECT_THAT(variables, Contains(Pair("HOROVOD_HOSTNAME", "virtual-1")));
  EXPECT_THAT(variables, Contains(Pair("FASTHOROVOD_STORE", "127.0.0.1:1")));
  EXPECT_THAT(variables, Contains(Pair("FASTHOROVOD_SECRET_FILE", "/proc/1/fd/3")));
  EXPECT_THAT(variables, Contains(Pair("FASTHOROVOD_HOST_IDENTITY", "virtual-1")));
  EXPECT_THAT(variables, Contains(Pair("FASTHOROVOD_FLOW_RATE", "1gbit")));
  EXPECT_THAT(variables, Contains(Pair("FASTHOROVOD_START_TIMEOUT", "5")));
}

TEST(RankVariables, LeaveOutWhatWasNotAskedFor) {
  const Overrides variables = rank_variables({}, {}, {});
  for (const auto* name : {"FASTHOROVOD_HOST_IDENTITY", "FASTHOROVOD_FLOW_RATE",
                           "FASTHOROVOD_NETWORK_INTERFACE", "FASTHOROVOD_START_TIMEOUT"}) {
    EXPECT_THAT(variables, Not(Contains(Key(name))));
  }
}

}  // namespace
}  // namespace fasthorovod::tools
