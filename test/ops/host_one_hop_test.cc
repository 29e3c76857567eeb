// All-reduces of ranks on hosts whose part between hosts is one hop, simulated in many random
// interleavings, as in host_collective_test.cc.
#include "ops/algorithms/host_one_hop.h"

#include <gtest/gtest.h>

#include <tuple>

#include "test/ops/host_network.h"

namespace fasthorovod::ops {
namespace {

using core::DataType;

constexpr std::uint64_t kMostElements = 256;  // of one piece

// By the formula in host_one_hop.h.
std::uint64_t bytes_by_formula(const HostLayout& layout) {
  std::uint64_t bytes = 0;
  for (int stripe = 0; stripe < layout.stripes && layout.pieces > 0; ++stripe) {
    if (layout.owns(stripe)) bytes += layout.stripe(0, stripe).bytes;
  }
  return bytes * (layout.hosts.size() - 1);
}

/// By door, whether chunks leave early, and whether there is one stripe.
class HostOneHop : public testing::TestWithParam<std::tuple<Door, bool, bool>> {
 protected:
  [[nodiscard]] static HostCollective collective(std::uint64_t elements,
                                                 std::uint64_t sequence = 1) {
    const auto [door, early, one_stripe] = GetParam();
    HostCollective made;
    made.elements = elements;
    made.group = wire_group(5, door);
    made.sequence = sequence;
    made.largest_area = kMostElements * sizeof(float) * kHostSlots;
    made.one_stripe = one_stripe;
    made.one_hop = true;
    made.early = early;
    return made;
  }
};

TEST_P(HostOneHop, GivesTheRightAnswerAndSendsTheBytesOfTheFormula) {
  std::uint64_t seed = 0;
  for (const Hosts& hosts : host_groups()) {
    for (const std::uint64_t elements : {0U, 1U, 3U, 9U, 97U, 211U}) {
      HostCollective tried = collective(elements);
      tried.chunk_bytes = ++seed % 5 < 2 ? 8 : 4096;
      const std::vector<Bytes> inputs = inputs_of(tried, count_ranks(hosts));
      HostNetwork network(hosts, {.flows = 1 + static_cast<int>(seed % 3), .seed = seed});
      network.submit(tried, inputs);
      network.boards().run();
      ASSERT_TRUE(network.boards().faults().empty()) << network.boards().faults()[0].error.message;
      ASSERT_TRUE(network.all_over()) << "it hangs, seed " << seed;
      for (int rank = 0; rank < count_ranks(hosts); ++rank) {
        const HostFlight& flight = network.flight(0, rank);
        ASSERT_EQ(flight.output(), expected_of(tried, inputs)) << "rank " << rank;
        ASSERT_EQ(network.boards().bytes_sent(rank), bytes_by_formula(flight.layout()));
      }
    }
  }
}

TEST_P(HostOneHop, GivesTheSameBitsOnAllRanksHoweverTheyAreCarried) {
  const Hosts hosts = {{0, 1}, {2, 3, 4}, {5}};
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    HostCollective tried = collective(211);
    tried.type = type;
    const std::vector<Bytes> inputs = inputs_of(tried, 6, true);
    Bytes first;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      tried.chunk_bytes = 8U << (seed % 4);
      HostNetwork network(hosts, {.seed = seed, .naps = true});
      network.submit(tried, inputs);
      network.boards().run();
      ASSERT_TRUE(network.all_over());
      if (first.empty()) first = network.flight(0, 0).output();
      for (int rank = 0; rank < 6; ++rank) ASSERT_EQ(network.flight(0, rank).output(), first);
    }
  }
}

// What leaves early is alone in its group on its rank.
TEST_P(HostOneHop, RunsInSeveralGroupsBesideRingsWithoutHanging) {
  const std::vector<Hosts> groups = {
      {{0, 1}, {2, 3}}, {{0}, {1}, {2}}, {{0, 1}, {2}, {3, 4, 5}}, {{0, 1}, {2, 3}, {4, 5}, {6}}};
  const bool early = std::get<1>(GetParam());
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Hosts& hosts = groups[seed % groups.size()];
    HostNetwork network(hosts, {.flows = 1 + static_cast<int>(seed % 2),
                                .window = early ? 1U : 4U,
                                .seed = seed,
                                .naps = seed % 3 != 0,
                                .room = seed % 4 < 2 ? 64 : std::uint64_t{1} << 40});
    std::vector<Bytes> expected;
    for (std::uint64_t number = 0; number < 12; ++number) {
      HostCollective tried = collective(number * number * 7 % 211, number + 1);
      if (std::get<0>(GetParam()) == Door::kOrdered) {
        tried.group += static_cast<std::uint32_t>(number % 3);
      }
      if (number % 4 == 3) {
        tried.one_hop = tried.early = false;
        tried.largest_area = 64U << (number % 4);
      }
      const std::vector<Bytes> inputs = inputs_of(tried, count_ranks(hosts));
      expected.push_back(expected_of(tried, inputs));
      network.submit(tried, inputs);
    }
    network.boards().run();
    ASSERT_TRUE(network.boards().faults().empty()) << network.boards().faults()[0].error.message;
    ASSERT_TRUE(network.all_over()) << "it hangs, seed " << seed;
    for (std::size_t number = 0; number < expected.size(); ++number) {
      for (int rank = 0; rank < count_ranks(hosts); ++rank) {
        ASSERT_EQ(network.flight(number, rank).output(), expected[number]) << seed;
      }
    }
  }
}

// A rank comes late: what its host gets early waits for it, and parks nowhere.
TEST_P(HostOneHop, WaitsForAMateThatComesLate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HostNetwork network({{0, 1}, {2, 3}}, {.window = 1, .seed = seed});
    for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
      const HostCollective tried = collective(100, sequence);
      network.submit(tried, inputs_of(tried, 4));
    }
    network.hold_back(3, true);
    network.boards().run();
    EXPECT_EQ(network.boards().bytes_sent(2), 0U);
    if (std::get<0>(GetParam()) == Door::kOrdered) {
      EXPECT_EQ(network.boards().parked(), 0U);
    }
    network.hold_back(3, false);
    network.boards().run();
    ASSERT_TRUE(network.all_over()) << seed;
    ASSERT_TRUE(network.boards().faults().empty());
  }
}

// Ranks give an operation up at a random moment: its memory is not touched after `done`, and the
// next one is not disturbed.
TEST_P(HostOneHop, GivenUpAtAnyMomentLeavesTheRestHealthy) {
  if (std::get<0>(GetParam()) == Door::kNamed) GTEST_SKIP() << "named operations fail together";
  const Hosts hosts = {{0, 1}, {2, 3}, {4}};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    HostNetwork network(hosts, {.window = 4, .seed = seed, .naps = seed % 2 == 0});
    HostCollective tried = collective(200);
    tried.chunk_bytes = 64;
    const std::vector<Bytes> inputs = inputs_of(tried, 5);
    network.submit(tried, inputs);
    tried.group += 1;
    network.submit(tried, inputs);
    for (int rank = 0; rank < 5; ++rank) {
      while (!network.flight(0, rank).started()) network.boards().step();
    }
    for (std::uint64_t step = 0; step < seed * 4; ++step) network.boards().step();
    for (int rank = 0; rank < 5; ++rank) {
      for (std::uint64_t step = 0; step < seed % 7; ++step) network.boards().step();
      network.boards().board(rank).fail(collective(0).group, 1,
                                        {core::ErrorCode::kTimedOut, "too late"});
    }
    network.boards().run();
    ASSERT_TRUE(network.boards().faults().empty()) << network.boards().faults()[0].error.message;
    for (int rank = 0; rank < 5; ++rank) {
      const HostFlight& failed = network.flight(0, rank);
      ASSERT_TRUE(failed.outcome()) << seed;
      ASSERT_TRUE(*failed.outcome() || failed.untouched_since_failure()) << seed;
      ASSERT_EQ(network.flight(1, rank).output(), expected_of(tried, inputs)) << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, HostOneHop,
                         testing::Values(std::tuple{Door::kNamed, false, false},
                                         std::tuple{Door::kNamed, false, true},
                                         std::tuple{Door::kOrdered, false, false},
                                         std::tuple{Door::kOrdered, true, false},
                                         std::tuple{Door::kOrdered, true, true}));

}  // namespace
}  // namespace fasthorovod::ops
