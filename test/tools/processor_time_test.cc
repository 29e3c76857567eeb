#include "tools/fasthorovod-bench/processor_time.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>

namespace fasthorovod::tools {
namespace {

constexpr double kWork = 0.05;

double own_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void work() {
  const double end = own_seconds() + kWork;
  while (own_seconds() < end) continue;
}

/// A child that works when it is told to, says when it has, and then waits to be killed.
class Worker {
 public:
  Worker() {
    EXPECT_EQ(::pipe(order_.data()), 0);
    EXPECT_EQ(::pipe(answer_.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) serve();
  }

  ~Worker() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int end : {order_[0], order_[1], answer_[0], answer_[1]}) ::close(end);
  }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void work() {
    char byte = '!';
    EXPECT_EQ(::write(order_[1], &byte, 1), 1);
    EXPECT_EQ(::read(answer_[0], &byte, 1), 1);
  }

 private:
  [[noreturn]] void serve() {
    char byte = 0;
    while (::read(order_[0], &byte, 1) == 1) {
      tools::work();
      if (::write(answer_[1], &byte, 1) != 1) break;
    }
    ::_exit(0);
  }

  std::array<int, 2> order_{};
  std::array<int, 2> answer_{};
  pid_t pid_ = 0;
};

TEST(ProcessorTime, CountsThisProcess) {
  ProcessorTime time;
  work();
  EXPECT_GE(time.seconds(), kWork);
}

TEST(ProcessorTime, CountsAChildThatRuns) {
  Worker worker;
  ProcessorTime time;
  worker.work();
  EXPECT_GE(time.seconds(), kWork);
}

TEST(ProcessorTime, StartsAgain) {
  Worker worker;
  ProcessorTime time;
  worker.work();
  work();
  const double first = time.seconds();
  time.restart();
  EXPECT_LT(time.seconds(), first);
}

}  // namespace
}  // namespace fasthorovod::tools
