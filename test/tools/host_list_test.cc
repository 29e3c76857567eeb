#include "tools/fasthorovodrun/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fasthorovod::tools {
namespace {

using testing::HasSubstr;

std::string problem(std::string_view text) {
  const auto hosts = parse_hosts(text);
  return hosts ? "" : hosts.error().message;
}

TEST(HostList, ReadsNamesAndSlots) {
  const auto hosts = parse_hosts("localhost:4,n_1:2");
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ((*hosts)[0].name, "localhost");
  EXPECT_EQ((*hosts)[0].slots, 4);
  EXPECT_EQ((*hosts)[1].name, "n_1");
  EXPECT_EQ((*hosts)[1].slots, 2);
}

TEST(HostList, CountsOneSlotForABareName) {
  const auto hosts = parse_hosts("localhost");
  ASSERT_TRUE(hosts);
  EXPECT_EQ((*hosts)[0].slots, 1);
}

TEST(HostList, ReadsAddressesInBrackets) {
  const auto hosts = parse_hosts("[::1]:2,[fd00::1]");
  ASSERT_TRUE(hosts);
  EXPECT_EQ((*hosts)[0].name, "::1");
  EXPECT_EQ((*hosts)[0].slots, 2);
  EXPECT_EQ((*hosts)[1].name, "fd00::1");
}

TEST(HostList, IgnoresBlanksAndEmptyEntries) {
  const auto hosts = parse_hosts(" a:1 ,, b:2,");
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ((*hosts)[1].name, "b");
}

TEST(HostList, SaysWhichEntryIsBadAndWhere) {
  EXPECT_THAT(problem("a:1, b:x"), HasSubstr("'b:x' at position 6"));
  for (const auto* text : {"a:0", "a:-1", "a:", "a:1.5", "a:99999999999", "a: 2", "a:4097"}) {
    EXPECT_THAT(problem(text), HasSubstr("slots must be 1 to 4096")) << text;
  }
}

TEST(HostList, AsksForBracketsRoundAddresses) {
  EXPECT_THAT(problem("::1"), HasSubstr("[::1]:2"));
  EXPECT_THAT(problem("fd00::1:2"), HasSubstr("brackets"));
  EXPECT_THAT(problem("[::1:2"), HasSubstr("not closed"));
  EXPECT_THAT(problem("[::1]2"), HasSubstr("expected ':'"));
}

TEST(HostList, RefusesMissingNamesAndEmptyLists) {
  EXPECT_THAT(problem(":2"), HasSubstr("name is missing"));
  EXPECT_THAT(problem("[]:2"), HasSubstr("name is missing"));
  EXPECT_THAT(problem(" , "), HasSubstr("no host"));
}

TEST(HostList, RefusesAHostGivenTwice) {
  EXPECT_THAT(problem("a:1,A:2"), HasSubstr("'A:2' at position 5: this host is listed twice"));
}

TEST(HostList, KnowsThisMachine) {
  for (const auto* name : {"localhost", "LocalHost.", "127.0.0.1", "127.0.1.1", "::1", "Box",
                           "box.example.org", "box"}) {
    EXPECT_TRUE(is_local_name(name, "box.example.org")) << name;
  }
  for (const auto* name : {"other", "box.example.com", "10.0.0.1", ""}) {
    EXPECT_FALSE(is_local_name(name, "box.example.org")) << name;
  }
  EXPECT_FALSE(is_local_name("", ""));
}

}  // namespace
}  // namespace fasthorovod::tools
