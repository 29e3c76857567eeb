// The whole all-reduce of ranks on hosts, simulated: the steps inside hosts, and the real boards
// and schedules between them, in many random interleavings.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "ops/algorithms/cut.h"
#include "test/ops/host_network.h"

namespace fasthorovod::ops {
namespace {

using core::DataType;
using core::Reduction;

// By the formula in host_ring.h.
std::uint64_t bytes_by_formula(const HostLayout& layout) {
  if (!layout.crosses()) return 0;
  Shape ring;
  ring.rank = layout.host;
  ring.size = static_cast<int>(layout.hosts.size());
  ring.element_bytes = layout.element_bytes;
  std::uint64_t bytes = 0;
  for (std::uint32_t piece = 0; piece < layout.pieces; ++piece) {
    for (int stripe = 0; stripe < layout.stripes; ++stripe) {
      if (!layout.owns(stripe)) continue;
      ring.elements = layout.stripe(piece, stripe).bytes / layout.element_bytes;
      bytes += 2 * ring.bytes() - even_part(ring, ring.neighbour(1)).bytes -
               even_part(ring, ring.neighbour(2)).bytes;
    }
  }
  return bytes;
}

void check_told(const HostFlight& flight) {
  ASSERT_EQ(flight.pieces_told().size(), flight.layout().pieces);
  for (std::uint32_t piece = 0; piece < flight.layout().pieces; ++piece) {
    ASSERT_EQ(flight.pieces_told().count(piece), 1U);
  }
}

void check_one(const Hosts& hosts, const HostCollective& collective, std::uint64_t seed) {
  const int ranks = count_ranks(hosts);
  const std::vector<Bytes> inputs = inputs_of(collective, ranks);
  HostNetwork network(hosts, {.flows = 1 + static_cast<int>(seed % 3), .seed = seed});
  network.submit(collective, inputs);
  network.boards().run();
  ASSERT_TRUE(network.boards().faults().empty()) << network.boards().faults()[0].error.message;
  ASSERT_TRUE(network.all_over()) << "it hangs, seed " << seed;
  for (int rank = 0; rank < ranks; ++rank) {
    const HostFlight& flight = network.flight(0, rank);
    ASSERT_EQ(flight.output(), expected_of(collective, inputs)) << "rank " << rank;
    ASSERT_EQ(network.boards().bytes_sent(rank), bytes_by_formula(flight.layout()));
    check_told(flight);
    if (testing::Test::HasFatalFailure()) return;
  }
}

class HostCollectives : public testing::TestWithParam<Door> {
 protected:
  [[nodiscard]] static HostCollective collective(std::uint64_t elements,
                                                 std::uint64_t sequence = 1) {
    HostCollective collective;
    collective.elements = elements;
    collective.group = wire_group(5, GetParam());
    collective.sequence = sequence;
    return collective;
  }
};

TEST_P(HostCollectives, GiveTheRightAnswerAndSendTheBytesOfTheFormula) {
  // From one piece for all to pieces of one element.
  constexpr std::array<std::uint64_t, 4> kAreas = {4096, 400, 80, 1};
  std::uint64_t seed = 0;
  for (const Hosts& hosts : host_groups()) {
    for (const std::uint64_t elements : {0U, 1U, 3U, 9U, 97U, 211U}) {
      HostCollective tried = collective(elements);
      tried.largest_area = kAreas[++seed % (elements > 9 ? 3 : 4)];
      tried.chunk_bytes = seed % 5 < 2 ? 8 : 4096;
      check_one(hosts, tried, seed);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(HostCollectives, WorkForEveryTypeAndReduction) {
  std::uint64_t seed = 0;
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      HostCollective tried = collective(53);
      tried.type = type;
      tried.reduction = reduction;
      tried.largest_area = 200;
      check_one({{0, 3}, {1}, {2, 4, 5}}, tried, ++seed);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(HostCollectives, GiveTheSameBitsOnAllRanksHoweverTheyAreCarried) {
  const Hosts hosts = {{0, 1}, {2, 3, 4}, {5}};
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    HostCollective tried = collective(211);
    tried.type = type;
    tried.largest_area = 320;
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

// Several groups of one door, each with its own window. Flows park while ranks and flows sleep, and
// nothing may hang.
TEST_P(HostCollectives, RunSeveralAtATimeWithoutHanging) {
  const std::vector<Hosts> groups = {
      {{0, 1}, {2, 3}}, {{0}, {1}, {2}}, {{0, 1}, {2}, {3, 4, 5}}, {{0, 1}, {2, 3}, {4, 5}, {6}}};
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Hosts& hosts = groups[seed % groups.size()];
    HostNetwork network(hosts, {.flows = 1 + static_cast<int>(seed % 2),
                                .window = 4,
                                .seed = seed,
                                .naps = seed % 3 != 0,
                                .room = seed % 4 < 2 ? 64 : std::uint64_t{1} << 40});
    std::vector<Bytes> expected;
    for (std::uint64_t number = 0; number < 12; ++number) {
      HostCollective tried = collective(number * number * 7 % 301, number + 1);
      if (GetParam() == Door::kOrdered) tried.group += static_cast<std::uint32_t>(number % 3);
      tried.largest_area = 64U << (number % 4);
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

// Three hosts, each a piece ahead of its successor in an operation of its own, with flows that are
// full. If chunks of the next piece came unasked they would park in front of the chunk that each
// rank still owes the one behind, in a circle.
TEST_P(HostCollectives, DoNotHangWhenEachHostIsAheadInAnOperation) {
  constexpr std::uint32_t kChunks = 4;  // a segment
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HostNetwork network({{0}, {1}, {2}},
                        {.flows = 2, .window = 4, .seed = seed, .joins = false, .room = 10});
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
      HostCollective tried = collective(std::uint64_t{2} * 3 * kChunks, sequence);
      tried.largest_area = std::uint64_t{kHostSlots} * 3 * kChunks * 4;
      tried.slots = 1;
      tried.chunk_bytes = 4;
      network.submit(tried, inputs_of(tried, 3));
    }
    // The last chunk of the third step, of one operation for each rank.
    network.boards().delay([](int to, const transport::FrameHeader& header) {
      return header.kind == transport::FrameKind::kData && header.transfer == 3 * kChunks - 1 &&
             header.sequence % 3 == static_cast<std::uint64_t>(to);
    });
    network.boards().run();
    EXPECT_FALSE(network.all_over());
    network.boards().delay([](int, const auto&) { return false; });
    network.boards().run();
    ASSERT_TRUE(network.all_over()) << "it hangs, seed " << seed;
  }
}

// A rank comes late: its host can not take part, and nobody is disturbed but by waiting.
TEST_P(HostCollectives, WaitForAMateThatComesLate) {
  const Hosts hosts = {{0, 1}, {2, 3}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HostNetwork network(hosts, {.window = 4, .seed = seed});
    for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
      const HostCollective tried = collective(100, sequence);
      network.submit(tried, inputs_of(tried, 4));
    }
    network.hold_back(3, true);
    network.boards().run();
    EXPECT_EQ(network.boards().bytes_sent(2), 0U);
    if (GetParam() == Door::kOrdered) {
      EXPECT_EQ(network.boards().bytes_sent(0), 0U);
      EXPECT_EQ(network.boards().parked(), 0U);
      EXPECT_EQ(network.boards().board(0).awaited(collective(0).group, 1), std::vector<int>{2});
    } else {
      EXPECT_GT(network.boards().parked(), 0U);
    }
    network.hold_back(3, false);
    network.boards().run();
    ASSERT_TRUE(network.all_over()) << seed;
    ASSERT_TRUE(network.boards().faults().empty());
  }
}

std::string name_of(const testing::TestParamInfo<Door>& info) {
  return info.param == Door::kNamed ? "named" : "ordered";
}

INSTANTIATE_TEST_SUITE_P(Doors, HostCollectives, testing::Values(Door::kNamed, Door::kOrdered),
                         name_of);

// Ranks give one operation up at a random moment. Its memory must not be touched after `done`, and
// the other operation is not disturbed.
TEST(HostCollectiveFailure, AtAnyMomentLeavesTheRestHealthy) {
  const Hosts hosts = {{0, 1}, {2, 3}, {4}};
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    HostNetwork network(hosts, {.window = 4, .seed = seed, .naps = seed % 2 == 0});
    HostCollective tried;
    tried.elements = 200;
    tried.largest_area = 128;
    tried.group = wire_group(5, Door::kOrdered);
    const std::vector<Bytes> inputs = inputs_of(tried, 5);
    network.submit(tried, inputs);
    tried.sequence = 2;
    network.submit(tried, inputs);
    const auto all_started = [&network] {
      for (int rank = 0; rank < 5; ++rank) {
        if (!network.flight(1, rank).started()) return false;
      }
      return true;
    };
    while (!all_started()) network.boards().step();
    for (std::uint64_t step = 0; step < seed * 9; ++step) network.boards().step();
    for (int rank = 0; rank < 5; ++rank) {
      for (std::uint64_t step = 0; step < seed % 7; ++step) network.boards().step();
      network.boards().board(rank).fail(tried.group, 1, {core::ErrorCode::kTimedOut, "too late"});
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

}  // namespace
}  // namespace fasthorovod::ops
