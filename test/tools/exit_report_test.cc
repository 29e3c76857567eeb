#include "tools/fasthorovodrun/exit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace fasthorovod::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int exited_with(int code) { return code << 8; }

TEST(ExitReport, GivesTheWorkersOwnCode) {
  EXPECT_EQ(exit_code({.status = exited_with(0)}), 0);
  EXPECT_EQ(exit_code({.status = exited_with(3)}), 3);
  EXPECT_EQ(exit_code({.status = SIGSEGV}), 128 + SIGSEGV);
}

TEST(ExitReport, GivesTheShellsCodesForCommandsThatNeverRan) {
  EXPECT_EQ(exit_code({.exec_failure = ExecFailure{1, ENOENT}}), 127);
  EXPECT_EQ(exit_code({.exec_failure = ExecFailure{1, ENOEXEC}}), 126);
}

TEST(ExitReport, NamesRankHostAndProcess) {
  const Place place{.rank = 2, .size = 4, .host = "box"};
  const std::string text = describe(place, {.pid = 77, .status = exited_with(3)}, "x");
  EXPECT_EQ(text, "rank 2 (host box, pid 77) exited with code 3");
}

TEST(ExitReport, HintsAtMemoryForSigkillOnly) {
  const Place place;
  EXPECT_THAT(describe(place, {.status = SIGKILL, .peak_kilobytes = 2048}, "x"),
              testing::AllOf(HasSubstr("(SIGKILL)"), HasSubstr("memory (peak use 2 MiB)")));
  EXPECT_THAT(describe(place, {.status = SIGSEGV}, "x"),
              testing::AllOf(HasSubstr("(SIGSEGV)"), Not(HasSubstr("memory"))));
}

}  // namespace
}  // namespace fasthorovod::tools
