#include "core/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fasthorovod::core {
namespace {

TEST(Log, WritesWhatReachesTheThreshold) {
  std::vector<std::string> lines;
  Log log(LogLevel::kWarning, [&](LogLevel level, std::string_view line) {
    lines.push_back(std::string(to_string(level)) + ": " + std::string(line));
  });
  log.trace("a");
  log.info("b");
  log.warning("c");
  log.error("d");
  EXPECT_EQ(lines, (std::vector<std::string>{"warning: c", "error: d"}));
}

TEST(Log, IsSilentWhenOffOrWithoutSink) {
  Log off(LogLevel::kOff, [](LogLevel, std::string_view) { FAIL(); });
  off.error("a");
  Log nowhere(LogLevel::kTrace, nullptr);
  nowhere.error("a");
}

TEST(Log, FindsLevelsByNameInAnyCase) {
  EXPECT_EQ(log_level_from_name("Debug"), LogLevel::kDebug);
  EXPECT_EQ(log_level_from_name("WARNING"), LogLevel::kWarning);
  EXPECT_EQ(log_level_from_name("fatal"), LogLevel::kOff);
  EXPECT_FALSE(log_level_from_name("loud").has_value());
  EXPECT_FALSE(log_level_from_name("").has_value());
}

}  // namespace
}  // namespace fasthorovod::core
