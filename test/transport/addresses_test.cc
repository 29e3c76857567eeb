#include "transport/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "transport/listening_places.h"
#include "transport/member.h"

namespace fasthorovod::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

IpAddress ip(const std::string& text) { return parse_ip(text).value_or(IpAddress{}); }

std::vector<std::string> texts(const std::vector<IpAddress>& addresses) {
  std::vector<std::string> result;
  for (const IpAddress& address : addresses) result.push_back(address.to_string());
  return result;
}

std::vector<LocalAddress> a_host() {
  return {{"lo", ip("127.0.0.1")},       {"lo", ip("::1")},           {"eth0", ip("10.1.2.3")},
          {"eth0", ip("fe80::1%2")},     {"eth1", ip("192.168.7.8")}, {"eth1", ip("2001:db8::5")},
          {"docker0", ip("172.17.0.1")}, {"wlan0", ip("fe80::9%5")}};
}

std::vector<std::string> chosen(std::string_view filter) {
  auto result = choose_addresses(a_host(), filter);
  return result ? texts(*result) : std::vector<std::string>{result.error().message};
}

TEST(ChooseAddresses, TakesAllButLoopbackAndLinkLocal) {
  EXPECT_THAT(chosen(""), ElementsAre("10.1.2.3", "192.168.7.8", "2001:db8::5", "172.17.0.1"));
}

TEST(ChooseAddresses, TakesLinkLocalWhenThereIsNothingElse) {
  const auto result = choose_addresses({{"lo", ip("127.0.0.1")}, {"eth0", ip("fe80::1%2")}}, "");
  ASSERT_TRUE(result);
  EXPECT_THAT(texts(*result), ElementsAre("fe80::1%2"));
  EXPECT_THAT(chosen("wlan0"), ElementsAre("fe80::9%5"));
}

TEST(ChooseAddresses, MayComeBackEmptyWithoutAFilter) {
  const auto result = choose_addresses({{"lo", ip("127.0.0.1")}}, "");
  ASSERT_TRUE(result);
  EXPECT_THAT(*result, IsEmpty());
}

TEST(ChooseAddresses, FollowsTheFilter) {
  EXPECT_THAT(chosen("eth0"), ElementsAre("10.1.2.3"));
  EXPECT_THAT(chosen(" eth1 , eth0 "), ElementsAre("192.168.7.8", "2001:db8::5", "10.1.2.3"));
  EXPECT_THAT(chosen("172.17.0.1"), ElementsAre("172.17.0.1"));
  EXPECT_THAT(chosen("10.0.0.0/8"), ElementsAre("10.1.2.3"));
  EXPECT_THAT(chosen("192.168.0.0/21"), ElementsAre("192.168.7.8"));
  EXPECT_THAT(chosen("2001:db8::/32,10.1.2.3/32"), ElementsAre("2001:db8::5", "10.1.2.3"));
  EXPECT_THAT(chosen("lo"), ElementsAre("127.0.0.1", "::1"));
}

TEST(ChooseAddresses, ExplainsAFilterThatFindsNothing) {
  EXPECT_THAT(chosen("eth7"), ElementsAre(HasSubstr("eth0 (10.1.2.3)")));
  EXPECT_THAT(chosen("192.168.8.0/21"), ElementsAre(HasSubstr("matches no address")));
  EXPECT_THAT(chosen("10.0.0.0/33"), ElementsAre(HasSubstr("not a network")));
  EXPECT_THAT(chosen("eth0/8"), ElementsAre(HasSubstr("not a network")));
  EXPECT_THAT(chosen("^docker0"), ElementsAre(HasSubstr("not supported")));
}

TEST(Addresses, PrefersWhatIsThere) {
  std::vector<IpAddress> addresses{ip("1.1.1.1"), ip("2.2.2.2"), ip("3.3.3.3")};
  prefer(addresses, ip("3.3.3.3"));
  EXPECT_THAT(texts(addresses), ElementsAre("3.3.3.3", "1.1.1.1", "2.2.2.2"));
  prefer(addresses, ip("9.9.9.9"));
  EXPECT_THAT(texts(addresses), ElementsAre("3.3.3.3", "1.1.1.1", "2.2.2.2"));
}

TEST(Addresses, OfThisHostHoldLoopback) {
  const auto all = local_addresses();
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(std::ranges::any_of(
      *all, [](const LocalAddress& each) { return each.address.is_loopback(); }));
  const auto towards = address_towards(ip("127.0.0.1"));
  ASSERT_TRUE(towards);
  EXPECT_TRUE(towards->is_loopback());
}

TEST(Addresses, ResolveLiteralsAndLocalhost) {
  EXPECT_THAT(texts(*resolve("10.9.8.7")), ElementsAre("10.9.8.7"));
  const auto local = resolve("localhost");
  ASSERT_TRUE(local) << local.error().message;
  EXPECT_TRUE(std::ranges::all_of(*local, &IpAddress::is_loopback));
}

TEST(Addresses, TellThisHostFromOthersTheSameWayTwice) {
  const auto first = real_host_identity();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*first, *real_host_identity());
  EXPECT_FALSE(local_host_name().empty());
}

TEST(HostPort, ParsesNamesAndLiterals) {
  EXPECT_EQ(parse_host_port("node-1:4000")->host, "node-1");
  EXPECT_EQ(parse_host_port("1.2.3.4:4000")->port, 4000);
  EXPECT_EQ(parse_host_port("[2001:db8::5]:1")->host, "2001:db8::5");
}

TEST(HostPort, ExplainsWhatIsWrong) {
  const auto message = [](std::string_view text) {
    auto result = parse_host_port(text);
    return result ? std::string("no error") : result.error().message;
  };
  EXPECT_THAT(message("2001:db8::5"), HasSubstr("[2001:db8::5]:port"));
  EXPECT_THAT(message("::1"), HasSubstr("in brackets"));
  EXPECT_THAT(message("2001:db8::zz:70000"), HasSubstr("in brackets"));
  EXPECT_THAT(message("node-1"), HasSubstr("port is missing"));
  EXPECT_THAT(message(":4000"), HasSubstr("host is missing"));
  for (const char* port : {"node:", "node:0", "node:65536", "node:-1", "node:x", "node:1x"}) {
    EXPECT_THAT(message(port), HasSubstr("1 to 65535")) << port;
  }
  EXPECT_THAT(message("[node]:1"), HasSubstr("not an IPv6 address"));
}

TEST(Endpoint, GoesThroughTheSystemAndBack) {
  for (const char* text : {"1.2.3.4", "2001:db8::5", "fe80::1%3", "::1"}) {
    const Endpoint endpoint{ip(text), 4711};
    EXPECT_EQ(from_system(to_system(endpoint).get()), endpoint) << text;
  }
  EXPECT_EQ((Endpoint{ip("::1"), 5}.to_string()), "[::1]:5");
  EXPECT_EQ(from_system(to_system({ip("::ffff:1.2.3.4"), 5}).get())->to_string(), "1.2.3.4:5");
}

TEST(DiallingOrder, PrefersLoopbackOnOneHostAndAvoidsItOtherwise) {
  const Member peer{{"h", "h"}, "real", {{ip("10.0.0.1"), 1}, {ip("127.0.0.1"), 2}}};
  const auto same = dialling_order(peer, "real", {});
  ASSERT_EQ(same.size(), 2U);
  EXPECT_EQ(same[0].port, 2);
  const auto other = dialling_order(peer, "elsewhere", {});
  ASSERT_EQ(other.size(), 1U);
  EXPECT_EQ(other[0].port, 1);
}

TEST(DiallingOrder, TriesLinkLocalOnEachInterface) {
  const Member peer{{"h", "h"}, "real", {{ip("fe80::1"), 1}}};
  const std::vector<std::uint32_t> scopes{2, 5};
  const auto order = dialling_order(peer, "elsewhere", scopes);
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(order[0].address.scope, 2U);
  EXPECT_EQ(order[1].address.scope, 5U);
}

TEST(ListeningPlaces, AreLoopbackAloneWhenEverybodyMeetsThere) {
  for (const char* host : {"127.0.0.1:5", "localhost:5"}) {
    const auto places = places_near(host, ip("127.0.0.1"), "");
    ASSERT_TRUE(places);
    ASSERT_EQ(places->wanted.size(), 1U);
    EXPECT_EQ(places->wanted[0].to_string(), "127.0.0.1:0");
  }
}

TEST(ListeningPlaces, HoldMoreThanLoopbackWhenANameOnlyMeansItHere) {
  const auto places = places_near("some-name:5", ip("127.0.1.1"), "");
  ASSERT_TRUE(places);
  EXPECT_EQ(places->wanted.back().to_string(), "127.0.1.1:0");
  const auto all = local_addresses();
  EXPECT_EQ(places->wanted.size(), choose_addresses(*all, "")->size() + 1);
}

TEST(ListeningPlaces, OfTheMeetingPointAreExactlyThat) {
  const auto places = places_of_meeting_point("127.0.0.1:4000", "");
  ASSERT_TRUE(places);
  ASSERT_EQ(places->wanted.size(), 1U);
  EXPECT_EQ(places->wanted[0].to_string(), "127.0.0.1:4000");
  EXPECT_FALSE(places_of_meeting_point("0.0.0.0:4000", ""));
  EXPECT_FALSE(places_of_meeting_point("[::]:4000", ""));
}

TEST(ListeningPlaces, SurviveTheStore) {
  const std::vector<Endpoint> endpoints{{ip("10.0.0.1"), 1}, {ip("2001:db8::5"), 2}};
  const auto back = split_endpoints(join_endpoints(endpoints), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, endpoints);
  EXPECT_FALSE(split_endpoints("nonsense", {}));
}

TEST(RendezvousMessages, ComeBackAsTheyWere) {
  Roster roster;
  for (int rank = 0; rank < 5; ++rank) {
    roster.members.push_back({{"id" + std::to_string(rank / 2), "name"},
                              "real",
                              {{ip("10.0.0.1"), 9}, {ip("::1"), 8}},
                              rank == 1 ? "" : "door " + std::to_string(rank),
                              {.lanes = 1 + rank,
                               .auxiliaries = rank,
                               .flows = 64,
                               .cores = 3,
                               .link_mbit = 25'000,
                               .lane_mbit = 20'000,
                               .auxiliary_mbit = 15'000 + rank},
                              16 + rank});
  }
  roster.members[2].allreduce = {.forced = core::AllreduceAlgorithm::kOneHop,
                                 .deterministic = true};
  roster.allreduce = core::plan_allreduce(5, {.hop_seconds = 0.1}, {.flows = 4});
  roster.allreduce.measured = true;
  roster.members[4].wish.lanes.reset();
  roster.members[3].wish.auxiliaries.reset();
  auto back = decode_rendezvous(encode(roster));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(std::get<Roster>(*back).members, roster.members);
  EXPECT_EQ(std::get<Roster>(*back).allreduce, roster.allreduce);

  back = decode_rendezvous(encode(Introduction{5, roster.members[3]}));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Introduction>(*back).member, roster.members[3]);

  back = decode_rendezvous(encode(StartFailed{{core::ErrorCode::kTimedOut, "why", 4}}));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<StartFailed>(*back).error.culprit, 4);

  back = decode_rendezvous(encode(Missing{{3, 5}, 9}));
  ASSERT_TRUE(back);
  EXPECT_EQ(describe(std::get<Missing>(*back)), "ranks 3, 5 and 7 more");
  EXPECT_EQ(describe(Missing{{3}, 1}), "rank 3");
}

TEST(RendezvousMessages, RefuseLanesThatNoRankCanHave) {
  const auto accepts = [](const core::LaneWish& wish, int arena_mb) {
    const Member member{{"id", "name"}, "real", {{ip("10.0.0.1"), 9}}, "", wish, arena_mb};
    return decode_rendezvous(encode(Introduction{2, member})).has_value();
  };
  EXPECT_TRUE(accepts({.lanes = 16, .auxiliaries = 16, .flows = 64, .cores = 1 << 20}, 1 << 20));
  EXPECT_TRUE(accepts({.auxiliaries = 16, .flows = 1}, 16));
  EXPECT_FALSE(accepts({.lanes = 0, .flows = 1}, 16));
  EXPECT_FALSE(accepts({.lanes = 17, .flows = 1}, 16));
  EXPECT_FALSE(accepts({.lanes = 2, .auxiliaries = 3, .flows = 1}, 16));
  EXPECT_FALSE(accepts({.auxiliaries = 17, .flows = 1}, 16));
  EXPECT_FALSE(accepts({.flows = 0}, 16));
  EXPECT_FALSE(accepts({.flows = 65}, 16));
  EXPECT_FALSE(accepts({.flows = 1, .cores = -1}, 16));
  EXPECT_FALSE(accepts({.flows = 1, .link_mbit = -1}, 16));
  EXPECT_FALSE(accepts({.flows = 1, .lane_mbit = core::kMostMbit + 1}, 16));
  EXPECT_FALSE(accepts({.flows = 1, .auxiliary_mbit = -1}, 16));
  EXPECT_FALSE(accepts({.flows = 1}, 15));
  EXPECT_FALSE(accepts({.flows = 1}, (1 << 20) + 1));
}

TEST(RendezvousMessages, RefusePlansThatNobodyMakes) {
  const auto accepts = [](const core::AllreducePlan& plan) {
    return decode_rendezvous(encode(Roster{{}, plan})).has_value();
  };
  EXPECT_TRUE(accepts({}));
  EXPECT_TRUE(accepts({.forced = core::AllreduceAlgorithm::kTwoHop}));
  EXPECT_FALSE(accepts({.forced = static_cast<core::AllreduceAlgorithm>(3)}));
  EXPECT_FALSE(accepts({.figures = {.hop_seconds = -1}}));
  EXPECT_FALSE(accepts({.figures = {.rank_rate = std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(accepts({.limits = std::vector<core::AllreduceLimits>(17)}));
  EXPECT_TRUE(decode_rendezvous(encode(Probe{kMostPadding})));
  EXPECT_FALSE(decode_rendezvous(encode(Probe{kMostPadding + 1})));
}

TEST(RendezvousMessages, AreRefusedWhenCutOrLengthened) {
  const std::vector<RendezvousMessage> messages{
      Introduction{2, {{"id", "name"}, "real", {{ip("10.0.0.1"), 9}}, "door"}}, Missing{{1}, 1},
      Roster{{{{"id", "name"}, "real", {{ip("::1"), 9}}}}},
      StartFailed{{core::ErrorCode::kTimedOut, "why", 4}}, Probe{3}};
  for (const auto& message : messages) {
    auto bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(decode_rendezvous(std::span(bytes).first(length)))
          << message.index() << " cut to " << length;
    }
    bytes.push_back({});
    EXPECT_FALSE(decode_rendezvous(bytes)) << message.index();
  }
  EXPECT_FALSE(decode_rendezvous(std::vector<std::byte>(20, std::byte{0xFF})));
}

}  // namespace
}  // namespace fasthorovod::transport
