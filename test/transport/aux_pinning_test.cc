// Real auxiliaries on the cores of this machine.
#include "transport/aux_pinning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

#include "test/transport/aux_fixture.h"
#include "transport/own_processors.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;
using core::AuxPinning;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int> where(const AuxProcess& process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(process.pid(), sizeof set, &set), 0);
  std::vector<int> processors;
  for (int id = 0; id < CPU_SETSIZE; ++id) {
    if (CPU_ISSET(id, &set)) processors.push_back(id);
  }
  return processors;
}

class AuxPinningTest : public ::testing::Test {
 protected:
  void SetUp() override {
    put_auxiliary_on_path();
    std::string name = (fs::temp_directory_path() / "pinning-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    auto leased = AuxPool::of_process().lease(1);
    ASSERT_TRUE(leased) << leased.error().message;
    processes_ = *std::move(leased);
  }
  void TearDown() override {
    for (auto& process : processes_) AuxPool::of_process().give_back(std::move(process));
    fs::remove_all(folder_);
  }

  std::vector<CoreClaim> pin_as(const AuxPinning& pinning) {
    return pin(processes_, pinning, {.claims = folder_ / "own"}, log_);
  }
  /// A list of the last processor that this process may use.
  [[nodiscard]] AuxPinning last() const {
    return {.kind = AuxPinning::Kind::kList, .processors = {home_.back()}};
  }

  const std::vector<int> home_ = own_processors().usable;
  fs::path folder_;
  std::vector<AuxProcessPtr> processes_;
  std::vector<std::string> lines_;
  core::Log log_{core::LogLevel::kInfo,
                 [this](core::LogLevel, std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(AuxPinningTest, BindsToTheListedCoreAndBack) {
  const auto claims = pin_as(last());
  EXPECT_EQ(claims.size(), 1U);
  EXPECT_THAT(where(*processes_[0]), ElementsAre(home_.back()));
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("auxiliary 0 runs on processors")));
  EXPECT_THAT(pin_as({.kind = AuxPinning::Kind::kNone}), IsEmpty());
  EXPECT_EQ(where(*processes_[0]), home_);
}

TEST_F(AuxPinningTest, LeavesACoreThatAnotherJobHas) {
  const auto other = pin_as(last());
  ASSERT_EQ(other.size(), 1U);
  lines_.clear();
  EXPECT_THAT(pin_as(last()), IsEmpty());
  EXPECT_EQ(where(*processes_[0]), home_);
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("other auxiliaries have these")));
}

TEST_F(AuxPinningTest, BindsNobodyByItselfWhereNoCoreIsToSpare) {
  const auto claims =
      pin(processes_, {}, {.ranks_on_host = 1 << 20, .claims = folder_ / "own"}, log_);
  EXPECT_THAT(claims, IsEmpty());
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_EQ(where(*processes_[0]), home_);
}

TEST_F(AuxPinningTest, GoesOnWithoutClaims) {
  const auto claims = pin(processes_, last(), {.claims = "/nowhere/own"}, log_);
  EXPECT_THAT(claims, IsEmpty());
  EXPECT_EQ(where(*processes_[0]), home_);
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("/nowhere/own")));
}

TEST_F(AuxPinningTest, SaysWhichProcessorIsNone) {
  const core::Status status =
      check_pinning({.kind = AuxPinning::Kind::kList, .processors = {1023}}, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message,
              HasSubstr("this process may not run on processor 1023, only on "));
  EXPECT_TRUE(check_pinning(last(), 0));
  EXPECT_TRUE(check_pinning(last(), 1));
  EXPECT_FALSE(check_pinning(last(), 2));
  EXPECT_TRUE(check_pinning({}, 16));
}

TEST(OwnProcessors, TellWhichThreadsAreBound) {
  const std::vector<int> home = own_processors().usable;
  if (home.size() < 2) GTEST_SKIP() << "one processor";
  OwnProcessors seen;
  std::vector<int> of_thread;
  std::thread([&] {
    ASSERT_EQ(bind_thread({home.front()}), 0);
    of_thread = processors_of_thread();
    seen = own_processors();
  }).join();
  EXPECT_THAT(of_thread, ElementsAre(home.front()));
  EXPECT_EQ(seen.usable, home) << "other threads may use all";
  EXPECT_THAT(seen.bound, ElementsAre(home.front()));
}

}  // namespace
}  // namespace fasthorovod::transport
