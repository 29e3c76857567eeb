// What only auxiliary processes do: start, serve one lane after another, die, stop, be missed.
#include "transport/aux_lane.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "test/transport/aux_fixture.h"
#include "test/transport/fake_chunk_work.h"
#include "test/transport/socket_pair.h"
#include "transport/aux_program.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using Mode = FakeChunkWork::Mode;

constexpr std::size_t kArenaBytes = std::size_t{64} << 20;

class Losses {
 public:
  void add(const std::string& how) {
    const std::lock_guard lock(mutex_);
    all_.push_back(how);
    changed_.notify_all();
  }
  std::string first() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 40s, [&] { return !all_.empty(); }));
    return all_.empty() ? "" : all_.front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

class Auxiliary : public ::testing::Test {
 protected:
  std::unique_ptr<AuxLane> attach(const LaneOptions& options = {}) {
    process_ = rank_.lease();
    auto lane = AuxLane::attach(rank_.home, process_, options, work_,
                                [this](const std::string& how) { losses_.add(how); });
    EXPECT_TRUE(lane) << lane.error().message;
    return std::move(lane).value();
  }

  AuxRank rank_{kArenaBytes};
  FakeChunkWork work_;
  Losses losses_;
  AuxProcessPtr process_;
};

std::size_t descriptors() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

std::string name_of(pid_t pid) {
  std::string name;
  std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
  return name;
}

// Gone, or only its exit status is left for whoever is its parent now.
bool has_ended(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  return !(stat >> number >> name >> state) || state == "Z" || state == "X";
}

bool ends_soon(pid_t pid) {
  for (int i = 0; i < 5000 && !has_ended(pid); ++i) std::this_thread::sleep_for(1ms);
  return has_ended(pid);
}

TEST_F(Auxiliary, ServesOneLaneAfterAnotherWithOneProcess) {
  attach()->stop();
  const pid_t pid = process_->pid();
  EXPECT_EQ(name_of(pid), "fasthorovod-aux");
  const std::size_t before = descriptors();
  for (std::uint64_t round = 0; round < 100; ++round) {
    const auto lane = attach();
    EXPECT_EQ(process_->pid(), pid);
    auto pair = connected_pair(SocketKind::kTcp);
    lane->add_flow(1, std::move(pair.first));
    work_.queue(1, round, 0, 1000, Mode::kInto);
    lane->wake();
    EXPECT_EQ(read_up_to(pair.second, 1000 + kFrameHeaderBytes).size(), 1000 + kFrameHeaderBytes);
    lane->stop();
    EXPECT_TRUE(read_up_to(pair.second, 1).empty()) << "the flow is closed";
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(rank_.heap.used(), 0U);
}

TEST_F(Auxiliary, IsToldOfAtOnceWhenItIsKilledAndItsFlowsStayOpenUntilTheLaneStops) {
  const auto lane = attach();
  auto pair = connected_pair(SocketKind::kTcp);
  lane->add_flow(1, std::move(pair.first));
  work_.queue(1, 1, 0, 1000, Mode::kInto);
  lane->wake();
  ASSERT_EQ(read_up_to(pair.second, 1000 + kFrameHeaderBytes).size(), 1000 + kFrameHeaderBytes);
  ::kill(process_->pid(), SIGKILL);
  EXPECT_EQ(losses_.first(), "was killed by signal 9");
  std::byte byte{};
  EXPECT_EQ(::recv(pair.second.get(), &byte, 1, MSG_DONTWAIT), -1) << "no end has come";
  lane->stop();
  EXPECT_TRUE(read_up_to(pair.second, 1).empty());
  EXPECT_TRUE(ends_soon(process_->pid()));
  EXPECT_EQ(rank_.heap.used(), 0U);
}

// The flow of the other one rests until the dead one's flows are none of the rank's any more.
TEST_F(Auxiliary, LeavesWhatItDidNotCarryToAnotherWhenItIsKilled) {
  const LaneOptions options{.rates = std::make_shared<RateBoard>(1)};
  const auto killed = attach(options);
  const pid_t pid = process_->pid();
  const auto other = attach(options);
  auto used = connected_pair(SocketKind::kTcp);
  auto rested = connected_pair(SocketKind::kTcp);
  killed->add_flow(1, std::move(used.first));
  other->add_flow(1, std::move(rested.first));
  work_.queue(1, 1, 0, 1000, Mode::kInto);
  killed->wake();
  ASSERT_EQ(read_up_to(used.second, 1000 + kFrameHeaderBytes).size(), 1000 + kFrameHeaderBytes);
  EXPECT_TRUE(options.rates->reports()[0].flows[0].in_use);
  EXPECT_FALSE(options.rates->reports()[0].flows[1].in_use);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(losses_.first(), "was killed by signal 9");
  killed->stop();
  work_.queue(1, 2, 0, 1000, Mode::kInto);
  other->wake();
  EXPECT_EQ(read_up_to(rested.second, 1000 + kFrameHeaderBytes).size(), 1000 + kFrameHeaderBytes);
  other->stop();
  EXPECT_TRUE(options.rates->reports()[0].flows.empty());
}

TEST_F(Auxiliary, IsGivenUpWhenItDoesNotAnswerWhileOperationsArePending) {
  rank_.home.answer_limit = 1s;
  const auto lane = attach();
  ::kill(process_->pid(), SIGSTOP);
  rank_.busy.store(true);
  lane->wake();
  EXPECT_EQ(losses_.first(), "did not answer for 1 s: its process is stopped or starved");
  lane->stop();
  EXPECT_TRUE(ends_soon(process_->pid()));
}

TEST_F(Auxiliary, IsEndedWhenItDoesNotLetGo) {
  const auto lane = attach();
  const pid_t pid = process_->pid();
  ::kill(pid, SIGSTOP);
  lane->stop();
  EXPECT_TRUE(ends_soon(pid));
  attach()->stop();
  EXPECT_NE(process_->pid(), pid) << "the pool has started another";
}

TEST_F(Auxiliary, AnswersWhileItIsAliveHoweverLongNothingMoves) {
  rank_.home.answer_limit = 500ms;
  const auto lane = attach();
  rank_.busy.store(true);
  lane->wake();
  std::this_thread::sleep_for(2500ms);
  auto pair = connected_pair(SocketKind::kTcp);
  lane->add_flow(1, std::move(pair.first));
  work_.queue(1, 1, 0, 10, Mode::kInto);
  lane->wake();
  EXPECT_EQ(read_up_to(pair.second, 10 + kFrameHeaderBytes).size(), 10 + kFrameHeaderBytes);
  rank_.busy.store(false);
}

TEST_F(Auxiliary, SaysHowMuchOfTheArenaIsMissing) {
  rank_.home.staging_bytes = 2 * kArenaBytes;
  const auto lane = AuxLane::attach(rank_.home, rank_.lease(), {}, work_, [](const auto&) {});
  ASSERT_FALSE(lane);
  EXPECT_NE(lane.error().message.find("arena of 64 MiB"), std::string::npos)
      << lane.error().message;
}

// Forks a rank of its own, so that the end of a rank can be looked at; from a process without other
// threads, for one of them might hold a lock of the allocator at that moment, and the child for
// ever.
TEST(AuxiliaryOfAnEndingRank, EndsToo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in the child of a process that had some";
#endif
  for (const bool killed : {false, true}) {
    int pipe_ends[2] = {-1, -1};
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t rank = ::fork();
    if (rank == 0) {
      ::close(pipe_ends[0]);
      AuxRank of_child(kArenaBytes);
      const AuxProcessPtr process = of_child.lease();
      const pid_t pid = process->pid();
      (void)!::write(pipe_ends[1], &pid, sizeof pid);
      if (killed) ::kill(::getpid(), SIGKILL);
      ::_exit(0);
    }
    ::close(pipe_ends[1]);
    pid_t auxiliary = 0;
    ASSERT_EQ(::read(pipe_ends[0], &auxiliary, sizeof auxiliary), sizeof auxiliary);
    ASSERT_EQ(::waitpid(rank, nullptr, 0), rank);
    EXPECT_TRUE(ends_soon(auxiliary));
    ::close(pipe_ends[0]);
  }
}

// As a data loader's worker is: it lives on, and ends while the rank goes on.
TEST_F(Auxiliary, IsNotTouchedByAForkedChildOfItsRank) {
  const auto lane = attach();
  const pid_t child = ::fork();
  if (child == 0) {
    (void)process_->socket().send({.kind = AuxMessage::Kind::kDetach});
    process_->kill();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  auto pair = connected_pair(SocketKind::kTcp);
  lane->add_flow(1, std::move(pair.first));
  work_.queue(1, 1, 0, 10, Mode::kInto);
  lane->wake();
  EXPECT_EQ(read_up_to(pair.second, 10 + kFrameHeaderBytes).size(), 10 + kFrameHeaderBytes);
}

TEST(AuxProgram, IsSaidToBeMissingWithTheFolderWhereItShouldBe) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const auto program = find_aux_program();
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message.find("fasthorovod-aux is missing"), std::string::npos)
      << program.error().message;
}

TEST(AuxProgram, SaysWhenItIsAnotherProgramOrNone) {
  for (const auto& [program, words] :
       {std::pair{"/bin/true", "did not start"}, std::pair{"/nowhere/x", "No such file"}}) {
    const auto process = AuxProcess::start(program);
    ASSERT_TRUE(process);
    const core::Status hello = (*process)->await_hello(program, 10s);
    ASSERT_FALSE(hello);
    EXPECT_NE(hello.error().message.find(words), std::string::npos) << hello.error().message;
    (*process)->reap();
  }
}

}  // namespace
}  // namespace fasthorovod::transport
