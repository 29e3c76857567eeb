#include "transport/core_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

/// A tree of control groups as the kernel shows them.
class CoreQuota : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "groups.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~CoreQuota() override { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text << "\n";
  }
  [[nodiscard]] std::optional<int> quota(const std::string& groups) const {
    write("groups", groups);
    return core_quota(folder_ / "groups", folder_ / "root");
  }

 private:
  fs::path folder_;
};

TEST_F(CoreQuota, IsNoneWithoutGroupsOrWithoutALimit) {
  EXPECT_EQ(core_quota("/nowhere/groups", "/nowhere/root"), std::nullopt);
  EXPECT_EQ(quota("0::/"), std::nullopt);
  write("root/a/cpu.max", "max 100000");
  EXPECT_EQ(quota("0::/a"), std::nullopt);
  write("root/cpu/a/cpu.cfs_quota_us", "-1");
  write("root/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota("3:cpu:/a"), std::nullopt);
  EXPECT_EQ(quota("nonsense"), std::nullopt);
}

TEST_F(CoreQuota, CountsWholeCoresOfTheGroup) {
  write("root/a/b/cpu.max", "350000 100000");
  EXPECT_EQ(quota("0::/a/b"), 3);
  write("root/a/b/cpu.max", "20000 100000");
  EXPECT_EQ(quota("0::/a/b"), 1) << "less than one core is still one";
}

TEST_F(CoreQuota, IsTheLeastOfAllLevels) {
  write("root/a/b/cpu.max", "800000 100000");
  write("root/a/cpu.max", "200000 100000");
  EXPECT_EQ(quota("0::/a/b"), 2);
  write("root/cpu.max", "100000 100000");
  EXPECT_EQ(quota("0::/a/b"), 1);
}

TEST_F(CoreQuota, IsFoundInAContainerWhoseGroupIsTheRoot) {
  write("root/cpu.max", "400000 100000");
  EXPECT_EQ(quota("0::/not/in/here"), 4);
}

TEST_F(CoreQuota, ReadsTheFirstVersionToo) {
  write("root/cpu/a/cpu.cfs_quota_us", "500000");
  write("root/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota("9:memory:/x\n4:cpu,cpuacct:/a\n0::/"), 5);
  EXPECT_EQ(quota("4:cpuacct,cpuset:/a"), std::nullopt);
}

}  // namespace
}  // namespace fasthorovod::transport
