#include "transport/cost_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

class CostCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "costs-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    parent_ = name;
  }
  void TearDown() override { fs::remove_all(parent_); }

  [[nodiscard]] fs::path folder() const { return parent_ / "a" / "b"; }

  fs::path parent_;
};

TEST_F(CostCache, KeepsTheCostsOfOneMachine) {
  EXPECT_EQ(load_costs(folder(), "x"), std::nullopt);
  const auto file = store_costs(core::typical_costs(), folder(), "x");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(load_costs(folder(), "x"), core::typical_costs());
  EXPECT_EQ(load_costs(folder(), "y"), std::nullopt);
}

TEST_F(CostCache, HoldsMachinesThatShareAHomeApart) {
  core::LaneCosts other = core::typical_costs();
  other.hop = 1;
  ASSERT_TRUE(store_costs(core::typical_costs(), folder(), "x"));
  ASSERT_TRUE(store_costs(other, folder(), "y"));
  EXPECT_EQ(load_costs(folder(), "x"), core::typical_costs());
  EXPECT_EQ(load_costs(folder(), "y"), other);
}

TEST_F(CostCache, PutsANewFileInPlaceOfTheOldOne) {
  core::LaneCosts newer = core::typical_costs();
  newer.hop = 1;
  ASSERT_TRUE(store_costs(core::typical_costs(), folder(), "x"));
  ASSERT_TRUE(store_costs(newer, folder(), "x"));
  EXPECT_EQ(load_costs(folder(), "x"), newer);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST_F(CostCache, IgnoresADamagedFile) {
  const auto file = store_costs(core::typical_costs(), folder(), "x");
  ASSERT_TRUE(file);
  fs::resize_file(*file, fs::file_size(*file) - 1);
  EXPECT_EQ(load_costs(folder(), "x"), std::nullopt);
  std::ofstream(*file) << "something else";
  EXPECT_EQ(load_costs(folder(), "x"), std::nullopt);
}

TEST_F(CostCache, SaysWhyItCanNotKeepThem) {
  EXPECT_FALSE(store_costs(core::typical_costs(), {}, "x"));
  std::ofstream(parent_ / "a") << "a file";
  const auto kept = store_costs(core::typical_costs(), folder(), "x");
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, ::testing::HasSubstr(folder().string()));
}

TEST_F(CostCache, LiesWhereTheUserKeepsSuchThings) {
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(usual_cost_folder(), "/cache/fasthorovod");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(usual_cost_folder(), "/home/me/.cache/fasthorovod");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(usual_cost_folder(), "");
  EXPECT_EQ(load_costs(), std::nullopt);
}

TEST_F(CostCache, NamesProcessorKernelAndBuild) {
  EXPECT_THAT(machine_key(),
              ::testing::AllOf(::testing::StartsWith("processor: "),
                               ::testing::HasSubstr(", Linux "), ::testing::HasSubstr(", build ")));
}

}  // namespace
}  // namespace fasthorovod::transport
