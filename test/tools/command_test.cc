#include "tools/fasthorovodrun/command.h"

#include <gtest/gtest.h>

namespace fasthorovod::tools {
namespace {

TEST(Command, IsFoundAlongThePath) {
  EXPECT_FALSE(check_command("sh", "/nowhere:/bin"));
  EXPECT_FALSE(check_command("/bin/sh", ""));
}

TEST(Command, ThatDoesNotExistIs127) {
  EXPECT_EQ(check_command("no-such-command", "/bin:/usr/bin")->exit_code, kNotFound);
  EXPECT_EQ(check_command("/no/such/command", "/bin")->exit_code, kNotFound);
  EXPECT_EQ(check_command("/bin/sh/x", "/bin")->exit_code, kNotFound);
}

TEST(Command, ThatCannotRunIs126) {
  EXPECT_EQ(check_command("/etc/passwd", "")->exit_code, kCannotRun);
  EXPECT_EQ(check_command("/bin", "")->exit_code, kCannotRun);
  EXPECT_EQ(check_command("passwd", "/nowhere:/etc")->exit_code, kCannotRun);
}

TEST(Command, IsWrittenAsAShellWouldReadIt) {
  EXPECT_EQ(quoted({"python", "a b", "it's", "", "$HOME", "x=1"}),
            R"(python 'a b' 'it'\''s' '' '$HOME' x=1)");
}

}  // namespace
}  // namespace fasthorovod::tools
