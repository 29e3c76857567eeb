#include "transport/core_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

class CoreClaims : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "claims-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    parent_ = name;
  }
  void TearDown() override { fs::remove_all(parent_); }

  [[nodiscard]] fs::path folder() const { return parent_ / "own"; }
  [[nodiscard]] bool is_free(int core) const {
    const auto claim = CoreClaim::take(core, folder());
    EXPECT_TRUE(claim) << claim.error().message;
    return claim && claim->has_value();
  }

  fs::path parent_;
};

TEST_F(CoreClaims, GiveACoreToOneOnly) {
  {
    const auto claim = CoreClaim::take(3, folder());
    ASSERT_TRUE(claim);
    ASSERT_TRUE(claim->has_value());
    EXPECT_FALSE(is_free(3));
    EXPECT_TRUE(is_free(2)) << "another core";
  }
  EXPECT_TRUE(is_free(3)) << "given back";
}

TEST_F(CoreClaims, EndWithTheirProcess) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto claim = CoreClaim::take(1, folder());
    const char answer = claim && claim->has_value() ? 'y' : 'n';
    (void)!::write(ready[1], &answer, 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_FALSE(is_free(1));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_free(1)) << "its file is still there";
  EXPECT_TRUE(fs::exists(folder() / "core-1"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(CoreClaims, AreNotKeptByAForkedChild) {
  std::array<int, 2> end{};
  ASSERT_EQ(::pipe(end.data()), 0);
  pid_t child = 0;
  {
    const auto claim = CoreClaim::take(1, folder());
    ASSERT_TRUE(claim && claim->has_value());
    child = ::fork();
    if (child == 0) {
      char byte = 0;
      ::close(end[1]);
      (void)!::read(end[0], &byte, 1);
      ::_exit(0);
    }
  }
  EXPECT_TRUE(is_free(1));
  ::close(end[1]);
  ::close(end[0]);
  ::waitpid(child, nullptr, 0);
}

TEST_F(CoreClaims, RefuseAFolderThatOthersCanWrite) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder().c_str(), 0777), 0);
  const auto claim = CoreClaim::take(1, folder());
  ASSERT_FALSE(claim);
  EXPECT_THAT(claim.error().message, ::testing::HasSubstr("can be written by other users"));
}

TEST_F(CoreClaims, RefuseALinkInPlaceOfTheFolder) {
  fs::create_symlink("/tmp", folder());
  EXPECT_FALSE(CoreClaim::take(1, folder()));
}

TEST_F(CoreClaims, RefuseWhatIsNoFolder) {
  EXPECT_FALSE(CoreClaim::take(1, parent_ / "missing" / "own"));
}

}  // namespace
}  // namespace fasthorovod::transport
