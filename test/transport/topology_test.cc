// The machine as files of the kernel describe it, and this one.
#include "transport/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "transport/own_processors.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;
using core::Processor;

/// Files under a folder that goes with the test.
class FakeSys final {
 public:
  FakeSys() {
    std::string name = (fs::temp_directory_path() / "sys-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~FakeSys() { fs::remove_all(root_); }
  FakeSys(const FakeSys&) = delete;
  FakeSys& operator=(const FakeSys&) = delete;

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  [[nodiscard]] const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

/// Four processors, two a core.
void describe_processors(const FakeSys& sys) {
  sys.write("devices/system/cpu/online", "0-3");
  for (const int id : {0, 1, 2, 3}) {
    const std::string siblings = id % 2 == 0 ? "0,2" : "1,3";
    sys.write("devices/system/cpu/cpu" + std::to_string(id) + "/topology/thread_siblings_list",
              siblings);
  }
}

TEST(Topology, ReadsCoresAndTheProcessorsNearTheCard) {
  const FakeSys sys;
  describe_processors(sys);
  sys.write("class/net/eth7/device/local_cpulist", "1,3");
  const auto processors = look_at_sys("eth7", sys.root());
  ASSERT_TRUE(processors);
  EXPECT_EQ(*processors,
            (std::vector<Processor>{{0, 0, false}, {1, 1, true}, {2, 0, false}, {3, 1, true}}));
}

TEST(Topology, HasNoneNearWhereTheCardIsUnknownOrHasAllAlike) {
  const FakeSys sys;
  describe_processors(sys);
  sys.write("class/net/eth7/device/local_cpulist", "0-3");
  for (const char* interface : {"", "eth7", "eth8", "..", "a/b"}) {
    const auto processors = look_at_sys(interface, sys.root());
    ASSERT_TRUE(processors);
    EXPECT_TRUE(std::ranges::none_of(*processors, &Processor::near)) << interface;
  }
}

TEST(Topology, TakesProcessorsAsCoresWhereTheKernelDoesNotSay) {
  const FakeSys sys;
  sys.write("devices/system/cpu/online", "0,4");
  const auto processors = look_at_sys("", sys.root());
  ASSERT_TRUE(processors);
  EXPECT_EQ(*processors, (std::vector<Processor>{{0, 0}, {4, 4}}));
}

TEST(Topology, IsAnErrorWithoutProcessors) {
  const FakeSys sys;
  EXPECT_FALSE(look_at_sys("", sys.root()));
}

TEST(Topology, KnowsTheRateOfCardsOnly) {
  const FakeSys sys;
  sys.write("class/net/eth7/speed", "25000");
  EXPECT_EQ(link_mbit("eth7", sys.root()), 0) << "without a card the kernel makes it up";
  sys.write("class/net/eth7/device/vendor", "0x1");
  EXPECT_EQ(link_mbit("eth7", sys.root()), 25'000);
  sys.write("class/net/bond0/speed", "50000");
  sys.write("class/net/bond0/bonding/mode", "1");
  EXPECT_EQ(link_mbit("bond0", sys.root()), 50'000);
  sys.write("class/net/eth8/device/vendor", "0x1");
  EXPECT_EQ(link_mbit("eth8", sys.root()), 0);
  sys.write("class/net/eth8/speed", "-1");
  EXPECT_EQ(link_mbit("eth8", sys.root()), 0) << "the link is down";
  EXPECT_EQ(link_mbit("", sys.root()), 0);
}

TEST(Topology, KnowsWhoSharesTheLastLevelCache) {
  const FakeSys sys;
  const fs::path caches = "devices/system/cpu/cpu2/cache";
  EXPECT_TRUE(cache_sharers(2, sys.root()).empty());
  sys.write(caches / "index0" / "level", "1");
  sys.write(caches / "index0" / "shared_cpu_list", "2");
  sys.write(caches / "index1" / "level", "3");
  sys.write(caches / "index1" / "shared_cpu_list", "0-3");
  sys.write(caches / "index2" / "level", "2");
  sys.write(caches / "index2" / "shared_cpu_list", "2-3");
  EXPECT_EQ(cache_sharers(2, sys.root()), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Topology, FindsTheProcessorsOfThisProcess) {
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  const auto machine = look_at_machine("lo", log);
  ASSERT_TRUE(machine) << machine.error().message;
  for (const int id : own_processors().usable) {
    EXPECT_TRUE(std::ranges::count(*machine, id, &Processor::id) == 1) << id;
  }
}

TEST(Topology, SaysThatTheKernelIsAskedWithoutHwloc) {
  std::vector<std::string> lines;
  core::Log log(core::LogLevel::kInfo,
                [&lines](core::LogLevel, std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(look_at_machine("lo", log));
  // No plug-in lies beside this program.
  EXPECT_THAT(lines, ::testing::ElementsAre(::testing::HasSubstr(
                         "no hwloc, the kernel is asked instead: the plug-in fasthorovod-hwloc.so "
                         "is not in")));
}

#ifdef FASTHOROVOD_HWLOC_FOLDER
TEST(Topology, IsTheSameByHwloc) {
  core::Log log(core::LogLevel::kOff, [](core::LogLevel, std::string_view) {});
  const auto by_hwloc = look_at_machine("lo", log, {FASTHOROVOD_HWLOC_FOLDER});
  const auto by_kernel = look_at_sys("lo");
  ASSERT_TRUE(by_hwloc);
  ASSERT_TRUE(by_kernel);
  EXPECT_EQ(*by_hwloc, *by_kernel);
}
#endif

}  // namespace
}  // namespace fasthorovod::transport
