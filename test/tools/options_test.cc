#include "tools/fasthorovodrun/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fasthorovod::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string problem(const std::vector<std::string>& arguments) {
  const auto options = parse_options(arguments);
  return options ? "" : options.error().message;
}

TEST(Options, ReadTheShortForms) {
  const auto options = parse_options({"-np", "4", "-H", "localhost:4", "-v", "python", "t.py"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->ranks, 4);
  EXPECT_EQ(options->hosts.size(), 1U);
  EXPECT_TRUE(options->verbose);
  EXPECT_THAT(options->command, ElementsAre("python", "t.py"));
}

TEST(Options, ReadValuesInTheSameArgument) {
  const auto options = parse_options({"-np=2", "-Hlocalhost:2", "--virtual-hosts=2", "x"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->ranks, 2);
  EXPECT_EQ(options->hosts[0].slots, 2);
  EXPECT_EQ(options->virtual_hosts, 2);
}

TEST(Options, LeaveTheCommandItsArguments) {
  const auto options = parse_options({"-np", "2", "prog", "-np", "3", "--verbose", "--", ""});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ranks, 2);
  EXPECT_FALSE(options->verbose);
  EXPECT_THAT(options->command, ElementsAre("prog", "-np", "3", "--verbose", "--", ""));
}

TEST(Options, EndAtTwoDashes) {
  const auto options = parse_options({"-np", "2", "--", "--odd-name", "--"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->command, ElementsAre("--odd-name", "--"));
}

TEST(Options, KeepBracketsOfAddresses) {
  const auto options = parse_options({"-np", "1", "-H", "[::1]", "x"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->hosts[0].name, "::1");
}

TEST(Options, TakeTheLastOfRepeatedValuesAndAllInterfaces) {
  const auto options = parse_options({"-np", "1", "-np", "2", "--network-interface", "eth0",
                                      "--network-interfaces", "eth1,10.0.0.0/8", "x"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->ranks, 2);
  EXPECT_EQ(options->network_interface, "eth0,eth1,10.0.0.0/8");
}

TEST(Options, ReadTheRest) {
  const auto options = parse_options({"--num-proc", "2", "--virtual-rate", "200mbit", "--gloo",
                                      "--output-filename", "out", "--start-timeout", "30", "x"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->virtual_rate, "200mbit");
  EXPECT_EQ(options->output_directory, "out");
  EXPECT_EQ(options->start_timeout_s, 30);
}

TEST(Options, NeedNoCommandToPrintSomething) {
  for (const auto* flag : {"--help", "-h", "--version", "--check-build", "-cb"}) {
    EXPECT_TRUE(parse_options({flag})) << flag;
  }
}

TEST(Options, NameWhatIsWrong) {
  EXPECT_THAT(problem({}), HasSubstr("-np N"));
  EXPECT_THAT(problem({"x"}), HasSubstr("-np N"));
  EXPECT_THAT(problem({"-np", "2"}), HasSubstr("a command"));
  EXPECT_THAT(problem({"-np", "2", "--"}), HasSubstr("a command"));
  EXPECT_THAT(problem({"-np", "2", ""}), HasSubstr("empty name"));
  EXPECT_THAT(problem({"-np"}), HasSubstr("-np needs a value"));
  EXPECT_THAT(problem({"-np="}), HasSubstr("needs a value"));
  EXPECT_THAT(problem({"--nump", "2", "x"}), HasSubstr("unknown option '--nump'"));
  EXPECT_THAT(problem({"-x", "2", "x"}), HasSubstr("unknown option '-x'"));
  EXPECT_THAT(problem({"--verbose=1", "x"}), HasSubstr("--verbose takes no value"));
  EXPECT_THAT(problem({"--mpi", "-np", "2", "x"}), HasSubstr("--mpi is not in this version"));
  EXPECT_THAT(problem({"--jsrun", "-np", "2", "x"}), HasSubstr("--jsrun is not in this version"));
}

TEST(Options, RefuseNumbersThatAreNone) {
  for (const auto* number : {"0", "-1", "two", "2x", "1.5", "99999999999999", "4097", " 2", "+2"}) {
    EXPECT_THAT(problem({"-np", number, "x"}), HasSubstr("from 1 to 4096")) << number;
  }
  EXPECT_THAT(problem({"-np", "2", "--start-timeout", "0", "x"}), HasSubstr("--start-timeout"));
  EXPECT_THAT(problem({"-np", "2", "--virtual-hosts", "no", "x"}), HasSubstr("--virtual-hosts"));
}

TEST(Options, RefuseRatesAndHostsByName) {
  EXPECT_THAT(problem({"-np", "2", "--virtual-rate", "fast", "x"}), HasSubstr("--virtual-rate"));
  EXPECT_THAT(problem({"-np", "2", "-H", "a:b", "x"}), HasSubstr("-H: 'a:b'"));
}

TEST(Options, AreAllInTheHelpText) {
  const std::string text = help_text();
  for (const auto* name : {"-np", "--hosts", "--virtual-hosts", "--virtual-rate", "--check-build",
                           "--output-filename", "--network-interface", "--start-timeout"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

}  // namespace
}  // namespace fasthorovod::tools
