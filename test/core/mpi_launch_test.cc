#include "core/mpi_launch.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

const Environment kOpenMpi{
    {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}};

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}

MpiLaunch found(const Environment& environment) {
  const auto launch = find_mpi_launch(environment);
  EXPECT_TRUE(launch.has_value()) << launch.error().message;
  EXPECT_TRUE(launch && *launch) << "nothing was found";
  return launch && *launch ? **launch : MpiLaunch{};
}

bool finds_nothing(const Environment& environment) {
  const auto launch = find_mpi_launch(environment);
  return launch.has_value() && !launch->has_value();
}

TEST(MpiLaunch, KnowsTheLaunchers) {
  MpiLaunch launch = found(kOpenMpi);
  EXPECT_EQ(launch.launcher, "mpirun of Open MPI");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 4);
  launch = found({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.size, 3);
  launch = found({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 2);
}

TEST(MpiLaunch, IsNothingWithoutBothNumbers) {
  EXPECT_TRUE(finds_nothing({}));
  EXPECT_TRUE(finds_nothing({{"PMIX_RANK", "1"}}));
  EXPECT_TRUE(finds_nothing({{"PMI_SIZE", "1"}, {"PMI_RANK", ""}}));
}

TEST(MpiLaunch, GivesWayToWhatSaysMore) {
  for (const char* name : {"FASTHOROVOD_RANK", "FASTHOROVOD_SIZE", "FASTHOROVOD_STORE",
                           "FASTHOROVOD_RENDEZVOUS", "HOROVOD_RANK", "HOROVOD_SIZE"}) {
    EXPECT_TRUE(finds_nothing(with(kOpenMpi, name, "1"))) << name;
  }
  EXPECT_TRUE(finds_nothing(with(kOpenMpi, "TORCHELASTIC_RUN_ID", "none")));
}

TEST(MpiLaunch, TellsTorchrunByItsNumbers) {
  const Environment same = with(with(kOpenMpi, "RANK", "2"), "WORLD_SIZE", "4");
  EXPECT_EQ(found(same).rank, 2);
  EXPECT_TRUE(finds_nothing(with(same, "RANK", "9")));
  EXPECT_TRUE(finds_nothing(with(same, "WORLD_SIZE", "16")));
}

TEST(MpiLaunch, SaysWhichNumberMakesNoSense) {
  for (const char* bad : {"4", "-1", "x", "2x"}) {
    const auto launch = find_mpi_launch(with(kOpenMpi, "OMPI_COMM_WORLD_RANK", bad));
    ASSERT_FALSE(launch.has_value()) << bad;
    EXPECT_EQ(launch.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(launch.error().message.find("OMPI_COMM_WORLD_RANK"), std::string::npos);
    EXPECT_NE(launch.error().message.find("0 to 3"), std::string::npos) << launch.error().message;
  }
  EXPECT_FALSE(find_mpi_launch(with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "0")).has_value());
}

TEST(MpiLaunch, NeedsNoPlaceToMeetAndNoSecret) {
  const auto parsed = parse_config(kOpenMpi);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->config.rank, 2);
  EXPECT_EQ(parsed->config.size, 4);
  EXPECT_EQ(parsed->config.mpi_launcher, "mpirun of Open MPI");
  EXPECT_TRUE(parsed->warnings.empty());
  EXPECT_FALSE(parse_config(with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "1")).has_value());
}

TEST(MpiLaunch, DoesNotHideHalfAnIdentity) {
  EXPECT_FALSE(parse_config(with(kOpenMpi, "FASTHOROVOD_RANK", "1")).has_value());
  EXPECT_FALSE(parse_config(with(kOpenMpi, "FASTHOROVOD_RENDEZVOUS", "a:1")).has_value());
}

}  // namespace
}  // namespace fasthorovod::core
