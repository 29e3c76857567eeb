// Starts under limits of the system that are too low: one sentence, on every rank, and no hang.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "test/transport/mate_group.h"
#include "transport/descriptor_limit.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;
using ::testing::AnyOf;
using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

void limit(int what, rlim_t value) {
  rlimit both{};
  ASSERT_EQ(::getrlimit(static_cast<__rlimit_resource>(what), &both), 0);
  both.rlim_cur = value;
  ASSERT_EQ(::setrlimit(static_cast<__rlimit_resource>(what), &both), 0);
}

/// From now on this process cannot make a memfd, as under an old kernel or a strict sandbox.
void forbid_memfd() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/// Runs `function` in a child; whether it returned, and without a failure.
bool succeeds_in_child(const std::function<void()>& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    function();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

// Rank 1 of two, as a process, starts as the engine does: with a large arena, after `harm`.
pid_t start_rank_1(World& world, const std::function<void()>& harm) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  auto plane = world.start(world.config(1)).get();
  if (!plane) ::_exit(2);
  harm();
  const auto arena = Arena::create(std::size_t{1} << 40);
  if (arena) ::_exit(3);
  (*plane)->give_up(arena.error());
  ::_exit(0);
}

void expect_both_to_hear(const std::function<void()>& harm, const std::string& words) {
  World world(Mode::kByHand, 2);
  const pid_t child = start_rank_1(world, harm);
  const Met met = meet_here(world, world.config(0));
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_FALSE(met.mates);
  EXPECT_EQ(met.mates.error().culprit, 1);
  EXPECT_THAT(met.mates.error().message, HasSubstr("rank 1 (host"));
  EXPECT_THAT(met.mates.error().message, HasSubstr(words));
}

TEST(StartLimits, SayThatThereIsNoSharedMemory) {
  expect_both_to_hear(forbid_memfd,
                      "creation of shared memory of 1048576 MiB failed: Function not implemented");
}

TEST(StartLimits, SayThatMemoryIsTooSmall) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need all the address space";
  expect_both_to_hear([] { limit(RLIMIT_AS, std::size_t{1} << 36); },
                      "mapping of shared memory of 1048576 MiB failed: Cannot allocate memory");
}

TEST(StartLimits, SayThatFilesMustBeSmaller) {
  expect_both_to_hear([] { limit(RLIMIT_FSIZE, std::size_t{1} << 30); },
                      "more than this process may have in a file: 1024 MiB (ulimit -f)");
}

core::Config rank_of(int rank, int size) {
  core::Config config;
  config.rank = rank;
  config.size = size;
  return config;
}

TEST(StartLimits, SayHowManyDescriptorsAreNeeded) {
  EXPECT_TRUE(succeeds_in_child([] {
    limit(RLIMIT_NOFILE, 50);
    const core::Status status = check_descriptors(rank_of(3, 8));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().culprit, 3);
    EXPECT_THAT(status.error().message, HasSubstr("may have 50 files open (ulimit -n) and has"));
    EXPECT_THAT(status.error().message, HasSubstr("rank 3 of 8 needs about 72 more"));
  }));
  EXPECT_EQ(descriptors_needed(rank_of(0, 1000)), descriptors_needed(rank_of(1, 1000)) + 1000);
  EXPECT_TRUE(check_descriptors(rank_of(0, 2)));
}

TEST(StartLimits, CountTheFlowsToBothNeighbours) {
  core::Config config = rank_of(3, 8);
  const std::size_t few = descriptors_needed(config);
  config.flows = 64;
  EXPECT_EQ(descriptors_needed(config), few + std::size_t{2} * (64 - 8));
  config.lanes = 16;
  EXPECT_GE(descriptors_needed(config), std::size_t{2} * 16 * 64);
  config.size = 2;
  EXPECT_LT(descriptors_needed(config), std::size_t{2} * 16 * 64) << "one neighbour only";
  config.size = 1;
  config.rank = 0;
  EXPECT_LT(descriptors_needed(config), 100U) << "no flows";
}

TEST(StartLimits, RefuseMoreFlowsThanDescriptors) {
  EXPECT_TRUE(succeeds_in_child([] {
    limit(RLIMIT_NOFILE, 1024);
    core::Config config = rank_of(3, 8);
    EXPECT_TRUE(check_descriptors(config));
    config.lanes = 16;
    config.flows = 64;
    EXPECT_FALSE(check_descriptors(config));
  }));
}

// Whatever the limit is, two ranks either meet or say that it is too low; a few of the limits are
// just above what the check asks for.
TEST(StartLimits, EndWellOrInOneSentenceForEveryNumberOfDescriptors) {
  World world(Mode::kByHand, 2);
  EXPECT_TRUE(succeeds_in_child([&world] {
    int met_at = 0;
    for (rlim_t files = 120; files >= 4; files -= 4) {
      limit(RLIMIT_NOFILE, files);
      auto config = world.config(0);
      config.start_timeout = 2s;
      const auto epoch = static_cast<std::uint32_t>(files);
      auto rank_0 = world.start(config, epoch);
      config.rank = 1;
      const auto one = world.start(config, epoch).get();
      const auto zero = rank_0.get();
      if (zero && one) ++met_at;
      const auto reason = [](const World::Outcome& outcome) {
        return outcome ? std::string("files") : outcome.error().message;
      };
      EXPECT_THAT(reason(zero), AnyOf(HasSubstr("files"), HasSubstr("missing: rank 1")));
      EXPECT_THAT(reason(one), AnyOf(HasSubstr("files"), HasSubstr("rank 0")));
    }
    EXPECT_GT(met_at, 3);
  }));
}

}  // namespace
}  // namespace fasthorovod::transport
