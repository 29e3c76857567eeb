#include "tools/fasthorovodrun/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace fasthorovod::tools {
namespace {

using testing::UnorderedElementsAre;

std::vector<pid_t> pids(const std::vector<Process>& processes) {
  std::vector<pid_t> result;
  for (const Process& process : processes) result.push_back(process.pid);
  return result;
}

TEST(ProcessTree, ReadsNamesWithBracketsAndBlanks) {
  Process process;
  ASSERT_TRUE(parse_process("12 (a) b) R) S 3 4 5 0 -1 4194304", process));
  EXPECT_EQ(process.pid, 12);
  EXPECT_EQ(process.state, 'S');
  EXPECT_EQ(process.parent, 3);
  EXPECT_EQ(process.group, 4);
  EXPECT_EQ(process.session, 5);
  EXPECT_FALSE(process.exiting);
}

TEST(ProcessTree, TellsWhoIsBeingTakenApart) {
  Process process;
  ASSERT_TRUE(parse_process("12 (a) R 3 4 5 0 -1 4194308 1", process));
  EXPECT_TRUE(process.exiting);
}

TEST(ProcessTree, RefusesWhatMakesNoSense) {
  Process process;
  for (const auto* text : {"", "12", "12 (a)", "12 (a) ", "12 (a) S", "x (a) S 1 2 3",
                           "12 (a) S 1 2", "12 (a) S 1 b 3", "12 (a) S 1 2 3 0 -1 x"}) {
    EXPECT_FALSE(parse_process(text, process)) << text;
  }
}

TEST(ProcessTree, FindsDescendantsButNoZombiesAndNothingSpared) {
  const std::vector<Process> processes{
      {1, 0, 1, 1, 'S'},     {10, 1, 10, 10, 'S'},  {11, 10, 11, 11, 'R'}, {12, 11, 11, 11, 'Z'},
      {13, 12, 11, 11, 'S'}, {14, 10, 14, 14, 'S'}, {15, 14, 14, 14, 'S'}, {16, 1, 16, 16, 'S'}};
  EXPECT_THAT(pids(descendants(processes, 10, {14})), UnorderedElementsAre(11, 13));
  EXPECT_THAT(pids(descendants(processes, 10, {})), UnorderedElementsAre(11, 13, 14, 15));
}

TEST(ProcessTree, SeesThisProcess) {
  const std::vector<Process> processes = all_processes();
  const auto self = std::ranges::find(processes, getpid(), &Process::pid);
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->parent, getppid());
  EXPECT_EQ(self->session, getsid(0));
}

TEST(ProcessTree, FindsNoEnvironmentEntryThatIsNotThere) {
  EXPECT_FALSE(has_environment_entry(getpid(), "FASTHOROVOD_NO_SUCH_NAME=1"));
}

}  // namespace
}  // namespace fasthorovod::tools
