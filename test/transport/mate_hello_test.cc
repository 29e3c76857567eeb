#include "transport/mate_hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "transport/mate_addresses.h"

namespace fasthorovod::transport {
namespace {

using core::ErrorCode;
using ::testing::HasSubstr;

const Secret& secret() {
  static const Secret instance = Secret::from_bytes(std::as_bytes(std::span("a secret of ours")));
  return instance;
}

const MateHello kHello{.job = {std::byte{9}}, .epoch = 3, .rank = 2, .size = 4};
const MateRoute kRoute{"door", 1};

TEST(MateHello, SaysWhoItIs) {
  const auto bytes = encode(kHello, kRoute, secret());
  EXPECT_EQ(bytes.size(), 72U);
  const auto read = decode_mate_hello(bytes, kRoute, secret());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, kHello);
}

TEST(MateHello, IsGoodForOneDoorAndOneRankOnly) {
  const auto bytes = encode(kHello, kRoute, secret());
  for (const MateRoute& route : {MateRoute{"doof", 1}, MateRoute{"door", 3}}) {
    EXPECT_EQ(decode_mate_hello(bytes, route, secret()).error().code, ErrorCode::kAuthentication);
  }
  const Secret other = Secret::from_bytes(std::as_bytes(std::span("another secret..")));
  EXPECT_EQ(decode_mate_hello(bytes, kRoute, other).error().code, ErrorCode::kAuthentication);
}

TEST(MateHello, IsRefusedWhenAnyByteChanged) {
  const auto good = encode(kHello, kRoute, secret());
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bytes = good;
    bytes[i] ^= std::byte{1};
    EXPECT_FALSE(decode_mate_hello(bytes, kRoute, secret())) << i;
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode_mate_hello(std::span(good).first(length), kRoute, secret())) << length;
  }
  auto longer = good;
  longer.push_back({});
  EXPECT_FALSE(decode_mate_hello(longer, kRoute, secret()));
}

TEST(MateHello, NamesBothVersions) {
  auto bytes = encode(kHello, kRoute, secret());
  bytes[8] = std::byte{7};
  EXPECT_THAT(decode_mate_hello(bytes, kRoute, secret()).error().message,
              HasSubstr("version 7 of the exchange of arenas, this rank version 1"));
}

Member member(const std::string& identity, const std::string& real, const std::string& door) {
  return {
      .placement = {identity, "name of " + real}, .real_host = real, .endpoints = {}, .door = door};
}

TEST(MateAddresses, AreThoseOfTheOtherRanksOfTheHost) {
  const std::vector<Member> members{member("a", "x", "0"), member("b", "x", "1"),
                                    member("a", "x", "2"), member("c", "y", "3"),
                                    member("a", "x", "4")};
  const auto mates = mates_of(2, members);
  ASSERT_EQ(mates.size(), 2U);
  EXPECT_EQ(mates[0].rank, 0);
  EXPECT_EQ(mates[1].rank, 4);
  EXPECT_EQ(mates[1].door, "4");
  EXPECT_TRUE(mates_of(3, members).empty());
  EXPECT_TRUE(any_share_a_host(members));
  EXPECT_FALSE(any_share_a_host(std::span(members).first(2)));
  EXPECT_TRUE(check_shared_hosts(members));
}

TEST(MateAddresses, TellRanksThatCannotReachEachOther) {
  const std::vector<Member> members{member("a", "x", "0"), member("b", "y", "1"),
                                    member("a", "z", "2")};
  const core::Status sound = check_shared_hosts(members);
  ASSERT_FALSE(sound);
  EXPECT_EQ(sound.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(sound.error().culprit, 2);
  EXPECT_THAT(sound.error().message,
              HasSubstr("ranks 0 and 2 both have FASTHOROVOD_HOST_IDENTITY \"a\""));
  EXPECT_THAT(sound.error().message, HasSubstr("must share host and network namespace"));
}

}  // namespace
}  // namespace fasthorovod::transport
