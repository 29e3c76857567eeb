// Starts that go wrong, and starts that go right although somebody disturbs them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "test/transport/plane_group.h"
#include "transport/addresses.h"
#include "transport/control_plane.h"
#include "transport/handshake.h"
#include "transport/socket.h"
#include "transport/store_client.h"

namespace fasthorovod::transport {
namespace {

using namespace testing;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Start : public ::testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, Start, ::testing::Values(Mode::kStore, Mode::kByHand),
                         [](const auto& param) { return to_string(param.param); });

core::Error error_of(std::future<World::Outcome>& start) {
  auto outcome = start.get();
  return outcome ? core::Error{core::ErrorCode::kInternal, "no error"} : outcome.error();
}

TEST(StartedFlows, FailAtOnceWhenThePeerWantsFewer) {
  World world(Mode::kByHand, 2);
  const auto ranks = world.start_all();
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(0, 1); });
  ranks[0]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 2); });
  const core::Error error = ranks[0]->wait_flow_failure(1);
  EXPECT_EQ(error.culprit, 1);
  EXPECT_THAT(error.message, HasSubstr("of 2 flows to rank 1"));
}

core::Config impatient(core::Config config, std::chrono::milliseconds limit = 700ms) {
  config.start_timeout = limit;
  return config;
}

TEST_P(Start, NamesTheRanksThatNeverCameEverywhere) {
  World world(GetParam(), 5);
  auto rank_0 = world.start(impatient(world.config(0)));
  auto rank_2 = world.start(impatient(world.config(2), 900ms));
  for (auto* start : {&rank_0, &rank_2}) {
    const core::Error error = error_of(*start);
    EXPECT_EQ(error.code, core::ErrorCode::kTimedOut) << error.message;
    EXPECT_THAT(error.message, HasSubstr("ranks 1, 3, 4"));
    EXPECT_EQ(error.culprit, 1);
  }
}

TEST_P(Start, NamesMissingRanksToOneWhoseTimeIsUpFirst) {
  World world(GetParam(), 3);
  auto rank_0 = world.start(impatient(world.config(0), 3s));
  auto rank_2 = world.start(impatient(world.config(2), 1'500ms));
  EXPECT_THAT(error_of(rank_2).message, HasSubstr("misses rank 1"));
  EXPECT_THAT(error_of(rank_0).message,
              AnyOf(HasSubstr("rank 2 on host"), HasSubstr("ranks 1, 2")));
}

TEST_P(Start, NamesRank0WhenItNeverCame) {
  World world(GetParam(), 2);
  auto rank_1 = world.start(impatient(world.config(1), 300ms));
  const core::Error error = error_of(rank_1);
  EXPECT_EQ(error.code, core::ErrorCode::kTimedOut);
  EXPECT_EQ(error.culprit, 0);
  EXPECT_THAT(error.message, HasSubstr("rank 0"));
}

TEST_P(Start, WorksInAnyOrder) {
  World world(GetParam(), 4);
  std::vector<std::future<World::Outcome>> starts;
  for (const int rank : {3, 1, 0, 2}) {
    starts.push_back(world.start(world.config(rank)));
    // Not for synchronisation: whatever the order becomes, the start must work.
    std::this_thread::sleep_for(60ms);
  }
  for (auto& start : starts) {
    auto outcome = start.get();
    EXPECT_TRUE(outcome) << outcome.error().message;
  }
}

TEST_P(Start, GoesOnAfterAWrongSecret) {
  World world(GetParam(), 2);
  const SecretFile wrong("quite another secret");
  auto rank_0 = world.start(world.config(0));
  core::Config stranger = world.config(1);
  stranger.secret_file = wrong.path();
  auto refused = world.start(stranger);
  const core::Error error = error_of(refused);
  EXPECT_EQ(error.code, core::ErrorCode::kAuthentication) << error.message;
  auto rank_1 = world.start(world.config(1));
  auto outcome = rank_0.get();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(rank_1.get());
  if (GetParam() == Mode::kByHand) {
    EXPECT_EQ((*outcome)->refused().secret, 1U);
    EXPECT_TRUE(world.log().contain("does not know the job secret"));
  }
}

TEST_P(Start, GoesOnAfterAnotherJob) {
  World world(GetParam(), 2);
  auto rank_0 = world.start(world.config(0));
  core::Config stranger = world.config(1);
  stranger.job = "00112233445566778899aabbccddeeff";
  auto refused = world.start(stranger);
  EXPECT_THAT(error_of(refused).message, HasSubstr("another job"));
  auto rank_1 = world.start(world.config(1));
  auto outcome = rank_0.get();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(rank_1.get());
  if (GetParam() == Mode::kByHand) {
    EXPECT_EQ((*outcome)->refused().job, 1U);
  }
}

TEST_P(Start, RefusesASecondProcessOfARank) {
  World world(GetParam(), 3);
  auto rank_0 = world.start(world.config(0));
  auto first = world.start(world.config(1));
  auto second = world.start(impatient(world.config(1), 3s));
  auto rank_2 = std::future<World::Outcome>();
  // Whichever of the two came second is refused, before the world is complete.
  while (first.wait_for(0ms) != std::future_status::ready &&
         second.wait_for(1ms) != std::future_status::ready) {
  }
  rank_2 = world.start(world.config(2));
  auto outcome = rank_0.get();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(rank_2.get());
  auto one = first.get();
  auto other = second.get();
  EXPECT_NE(one.has_value(), other.has_value());
  EXPECT_THAT((one ? other : one).error().message, HasSubstr("rank 1"));
  EXPECT_GE((*outcome)->refused().rank, 1U);
}

TEST_P(Start, ExplainsAWorldOfAnotherSize) {
  World world(GetParam(), 3);
  auto rank_0 = world.start(impatient(world.config(0)));
  core::Config config = world.config(1);
  config.size = 2;
  auto rank_1 = world.start(config);
  EXPECT_THAT(error_of(rank_1).message,
              HasSubstr("rank 0 was started in a world of 3, rank 1 in one of 2"));
  EXPECT_THAT(error_of(rank_0).message, HasSubstr("rank 1 was started in a world of 2"));
}

TEST_P(Start, NamesWhoHasWhatWhenRanksDisagreeOnTheDataPlane) {
  World world(GetParam(), 3);
  std::vector<std::future<World::Outcome>> starts;
  for (int rank = 0; rank < 3; ++rank) {
    core::Config config = world.config(rank);
    if (rank == 1) config.data_plane = core::DataPlane::kMpi;
    starts.push_back(world.start(config));
  }
  for (auto& start : starts) {
    const core::Error error = error_of(start);
    EXPECT_EQ(error.code, core::ErrorCode::kInvalidArgument) << error.message;
    EXPECT_THAT(error.message, HasSubstr("tcp on ranks 0, 2 and mpi on rank 1"));
  }
}

TEST_P(Start, HasOneRank0) {
  World world(GetParam(), 2);
  auto first = world.start(impatient(world.config(0)));
  auto second = world.start(impatient(world.config(0)));
  auto rank_1 = world.start(impatient(world.config(1)));
  auto one = first.get();
  auto other = second.get();
  EXPECT_TRUE(rank_1.get());
  ASSERT_NE(one.has_value(), other.has_value());
  EXPECT_THAT((one ? other : one).error().message,
              AnyOf(HasSubstr("in use"), HasSubstr("missing: rank 1")));
}

TEST(StartAtStore, EndsWhenTheStoreGoesAwayWhileRanksWaitForRank0) {
  World world(Mode::kStore, 3);
  auto rank_1 = world.start(impatient(world.config(1), 3s));
  auto rank_2 = world.start(impatient(world.config(2), 3s));
  // Not for synchronisation: whether they reached it already or not, the start must end.
  std::this_thread::sleep_for(50ms);
  world.stop_store();
  for (auto* start : {&rank_1, &rank_2}) {
    const core::Error error = error_of(*start);
    EXPECT_EQ(error.culprit, -1);
    EXPECT_THAT(error.message, AnyOf(HasSubstr("where rank 0 listens: the connection to the store"),
                                     HasSubstr("the store at " + world.meeting_point())));
  }
}

TEST(StartAtStore, EndsWhenTheStoreGoesAwayBeforeAllCame) {
  World world(Mode::kStore, 2);
  auto rank_0 = world.start(impatient(world.config(0), 2s));
  {
    const auto secret = Secret::from_file(world.secret_file().path());
    auto store = StoreClient::connect(world.meeting_point(), *secret, secret->derive_job_id(), 1,
                                      core::Clock::now() + kPatience);
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->get("rank 0 of epoch 0000000000", core::Clock::now() + kPatience));
  }
  world.stop_store();
  auto rank_1 = world.start(impatient(world.config(1)));
  EXPECT_THAT(error_of(rank_1).message, HasSubstr("the store at " + world.meeting_point()));
  // The store may go before rank 0 has heard that it has its word.
  EXPECT_THAT(error_of(rank_0).message,
              AnyOf(HasSubstr("missing: rank 1"), HasSubstr("the connection to the store")));
}

TEST(StartAtStore, NeedsItNoMoreWhenAllAreThere) {
  World world(Mode::kStore, 2);
  const auto ranks = world.start_all();
  world.stop_store();
  ranks[1]->send(0, "who needs a store");
  EXPECT_EQ(ranks[0]->receive(), "who needs a store");
}

TEST(StartByHand, RefusesARankOutOfRange) {
  World world(Mode::kByHand, 2);
  auto rank_0 = world.start(world.config(0));
  core::Config config = world.config(5);
  config.size = 6;
  auto rank_5 = world.start(config);
  EXPECT_THAT(error_of(rank_5).message,
              HasSubstr("rank 5 is there already, or has no place there"));
  auto rank_1 = world.start(world.config(1));
  EXPECT_TRUE(rank_1.get());
  auto outcome = rank_0.get();
  ASSERT_TRUE(outcome);
  EXPECT_EQ((*outcome)->refused().rank, 1U);
}

TEST(StartByHand, WaitsForRank0ToReachTheSameEpoch) {
  World world(Mode::kByHand, 2);
  auto old = world.start_all(0);
  auto ahead = world.start(world.config(1), 1);
  ASSERT_TRUE(eventually([&] { return old[0]->plane().refused().epoch > 0; }));
  old.clear();
  auto rank_0 = world.start(world.config(0), 1);
  auto outcome = rank_0.get();
  EXPECT_TRUE(outcome) << outcome.error().message;
  auto other = ahead.get();
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ((*other)->world().epoch, 1U);
}

TEST(StartByHand, SaysBothEpochsWhenTheyNeverMeet) {
  World world(Mode::kByHand, 2);
  auto rank_0 = world.start(impatient(world.config(0)), 3);
  auto rank_1 = world.start(impatient(world.config(1), 400ms), 4);
  EXPECT_THAT(error_of(rank_1).message, HasSubstr("it is in epoch 3, this rank in epoch 4"));
  EXPECT_THAT(error_of(rank_0).message, HasSubstr("rank 1"));
}

TEST(StartByHand, ExplainsATakenPort) {
  World world(Mode::kByHand, 2);
  const auto where = parse_host_port(world.meeting_point());
  auto squatter = listen_at({*parse_ip(where->host), where->port}, 1);
  ASSERT_TRUE(squatter);
  auto rank_0 = world.start(world.config(0));
  const core::Error error = error_of(rank_0);
  EXPECT_THAT(error.message, HasSubstr(world.meeting_point()));
  EXPECT_THAT(error.message, HasSubstr("in use"));
}

TEST(StartByHand, ExplainsAnAddressOfAnotherHost) {
  World world(Mode::kByHand, 2);
  core::Config config = world.config(0);
  config.rendezvous = "192.0.2.1:4000";
  auto rank_0 = world.start(config);
  EXPECT_THAT(error_of(rank_0).message,
              HasSubstr("cannot listen at its meeting point 192.0.2.1:4000"));
}

TEST(StartByHand, RefusesAMeetingPointWithoutBrackets) {
  World world(Mode::kByHand, 2);
  for (const int rank : {0, 1}) {
    core::Config config = world.config(rank);
    config.rendezvous = "::1:4000";
    auto start = world.start(config);
    const core::Error error = error_of(start);
    EXPECT_EQ(error.code, core::ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, HasSubstr("brackets"));
  }
}

TEST(StartByHand, WorksOverIpv6) {
  if (!listen_at({*parse_ip("::1"), 0}, 1)) GTEST_SKIP() << "no IPv6 here";
  World world(Mode::kByHand, 3, "::1");
  const auto ranks = world.start_all();
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(2, 2); });
  ranks[2]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 2); });
  EXPECT_EQ(ranks[1]->take_flows(2, 2).size(), 2U);
  EXPECT_EQ(ranks[2]->take_flows(1, 2).size(), 2U);
}

TEST(StartByHand, WorksOnAddressesOfThisHost) {
  const auto available = local_addresses();
  ASSERT_TRUE(available);
  const auto chosen = choose_addresses(*available, "");
  if (!chosen || chosen->empty() || chosen->front().is_link_local())
    GTEST_SKIP() << "loopback only";
  World world(Mode::kByHand, 3, chosen->front().to_string());
  const auto ranks = world.start_all();
  ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(2, 2); });
  ranks[2]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 2); });
  EXPECT_EQ(ranks[1]->take_flows(2, 2).size(), 2U);
  EXPECT_EQ(ranks[2]->take_flows(1, 2).size(), 2U);
}

TEST(StartByHand, RefusesAnInterfaceThatDoesNotExist) {
  World world(Mode::kStore, 2);
  core::Config config = world.config(0);
  config.network_interface = "nothing0";
  auto rank_0 = world.start(config);
  EXPECT_THAT(error_of(rank_0).message, HasSubstr("'nothing0' matches no address of this host"));
}

TEST_P(Start, ShowsAnOverriddenHostIdentity) {
  World world(GetParam(), 4);
  const auto ranks = world.start_all(
      0, [](core::Config& config) { config.host_identity = config.rank < 2 ? "first" : "second"; });
  EXPECT_EQ(ranks[3]->plane().world().local_rank, 1);
  EXPECT_EQ(ranks[3]->plane().world().cross_rank, 1);
  EXPECT_EQ(ranks[3]->plane().world().cross_size, 2);
}

TEST_P(Start, FiftyTimesLeavesNothingOpen) {
  World world(GetParam(), 2);
  world.start_all(0).clear();
  const std::size_t before = open_descriptors();
  const auto begin = core::Clock::now();
  for (std::uint32_t epoch = 1; epoch <= 50; ++epoch) {
    const auto ranks = world.start_all(epoch);
    ranks[0]->on_owner([](ControlPlane& plane) { plane.open_flows(1, 2); });
    ranks[1]->on_owner([](ControlPlane& plane) { plane.open_flows(0, 2); });
    ASSERT_EQ(ranks[0]->take_flows(1, 2).size(), 2U);
    ASSERT_EQ(ranks[1]->take_flows(0, 2).size(), 2U);
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(core::Clock::now() - begin);
  RecordProperty("milliseconds_a_cycle", static_cast<int>(took.count() / 50));
  // The store learns of the last closings a moment later.
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }))
      << open_descriptors() << ", before " << before;
}

TEST(StartAfterFork, AChildHoldsNoSocketOfItsParent) {
  World world(Mode::kByHand, 2);
  auto ranks = world.start_all();
  std::array<int, 2> gate{};
  ASSERT_EQ(::pipe2(gate.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte = 0;
    ::close(gate[1]);
    (void)!::read(gate[0], &byte, 1);  // stays until the parent has looked
    ::_exit(0);
  }
  ::close(gate[0]);
  ranks.erase(ranks.begin());  // rank 0 goes; a child that held its sockets would hide that
  EXPECT_TRUE(ranks[0]->wait_lost(0));
  ::close(gate[1]);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace fasthorovod::transport
