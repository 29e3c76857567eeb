// Lanes whose flows differ: one stands still, one is slow, all reorder; on one lane and on several,
// wherever those run.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "test/transport/fake_chunk_work.h"
#include "test/transport/lane_fixture.h"
#include "test/transport/shaped_relay.h"

namespace fasthorovod::transport {
namespace {

using Mode = FakeChunkWork::Mode;

constexpr std::size_t kChunkBytes = 32 << 10;
constexpr int kChunks = 400;
// What a flow that stands still can hold: the buffers of both its sockets (the kernel doubles what
// is asked for), half of its mark, and the chunk in hand.
constexpr int kHeldChunks = (4 * 64 + 512) / 32 + 1;

void queue_chunks(FakeChunkWork& work, int count, std::uint64_t sequence) {
  for (int i = 0; i < count; ++i) {
    work.queue(1, sequence, static_cast<std::uint32_t>(i), kChunkBytes,
               i % 2 == 0 ? Mode::kInto : Mode::kAbsorb);
  }
}

/// Lanes of one rank that share their work and their flows' rates.
class Rank final {
 public:
  /// `first`: as of RateBoard.
  explicit Rank(int lanes, std::optional<int> first = std::nullopt) {
    const LaneOptions options{.rates = std::make_shared<RateBoard>(first)};
    for (int i = 0; i < lanes; ++i) {
      lanes_.push_back(make_place(options, work));
    }
  }
  LanePlace& lane(std::size_t index) { return *lanes_[index % lanes_.size()]; }
  void wake() {
    for (const auto& lane : lanes_) lane->wake();
  }

  FakeChunkWork work;

 private:
  std::vector<std::unique_ptr<LanePlace>> lanes_;
};

/// The other end of that flow.
FileDescriptor give_a_chunk_to_its_first_flow(Rank& rank) {
  auto flow = connected_pair(SocketKind::kTcp);
  rank.lane(0).add_flow(1, std::move(flow.first));
  queue_chunks(rank.work, 1, 1);
  rank.wake();
  return std::move(flow.second);
}

class SlowFlow : public testing::TestWithParam<int> {
 protected:
  void join(const std::vector<WireShape>& shapes) {
    for (const WireShape& shape : shapes) {
      const std::size_t index = wires_.size();
      wires_.push_back(
          join_shaped(sender_.lane(index), 0, receiver_.lane(index), 1, shape, traffic_));
    }
  }
  void send(int count, std::uint64_t sequence) {
    queue_chunks(sender_.work, count, sequence);
    sender_.wake();
  }
  bool wait_received(int count) {
    return receiver_.work.wait_received(static_cast<std::size_t>(count));
  }

  WireTraffic traffic_;
  Rank sender_{GetParam()};
  Rank receiver_{GetParam()};
  std::vector<std::unique_ptr<ShapedRelay>> wires_;
};

INSTANTIATE_TEST_SUITE_P(Lanes, SlowFlow, testing::Values(1, 2, 3),
                         testing::PrintToStringParamName());

TEST_P(SlowFlow, ThatStandsStillHoldsNoMoreThanItsBuffers) {
  join({{.seed = 1}, {.seed = 2}, {.seed = 3}});
  wires_[1]->stall(true);
  send(kChunks, 1);
  ASSERT_TRUE(wait_received(kChunks - kHeldChunks)) << "with one flow standing still";
  wires_[1]->stall(false);
  ASSERT_TRUE(wait_received(kChunks));
}

TEST_P(SlowFlow, CarriesLess) {
  join({{.seed = 4}, {.seed = 5, .slower = 16}, {.seed = 6}});
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) send(kChunks, sequence);
  ASSERT_TRUE(wait_received(3 * kChunks - 2 * kHeldChunks));
  EXPECT_LT(8 * wires_[1]->carried(), wires_[0]->carried() + wires_[2]->carried());
  wires_[1].reset();  // its share of fast bytes is used up, and what it holds would stay
}

TEST_P(SlowFlow, OfOperationsThatFollowEachOtherKeepsNobodyWaiting) {
  join({{.seed = 7}, {.seed = 8, .slower = 4}, {.seed = 9}, {.seed = 10}});
  int expected = 0;
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
    const int count = 1 + static_cast<int>(sequence * 7 % 50);
    expected += count;
    send(count, sequence);
    // What the slow wire may carry grows with what the others do; it needs no more than that.
    traffic_.fast_bytes.fetch_add(std::uint64_t{50} * kChunkBytes * 4);
    ASSERT_TRUE(wait_received(expected)) << "operation " << sequence;
  }
}

TEST_P(SlowFlow, IsLeftOutWhereOthersAreInUse) {
  WireTraffic traffic;
  Rank sender(GetParam(), 2);
  Rank receiver(GetParam());
  std::vector<std::unique_ptr<ShapedRelay>> wires;
  for (std::uint32_t i = 0; i < 4; ++i) {
    wires.push_back(join_shaped(sender.lane(i), 0, receiver.lane(i), 1, {.seed = i}, traffic));
  }
  queue_chunks(sender.work, kChunks, 1);
  sender.wake();
  ASSERT_TRUE(receiver.work.wait_received(kChunks));
  const auto idle =
      std::ranges::count_if(wires, [](const auto& wire) { return wire->carried() == 0; });
  EXPECT_EQ(idle, 2);
}

// The others are not in use until it has ended, and nothing wakes their lanes but that.
TEST_P(SlowFlow, ThatEndsIsReplacedByOneThatRested) {
  Rank sender(GetParam(), 1);
  FileDescriptor used = give_a_chunk_to_its_first_flow(sender);
  ASSERT_EQ(read_up_to(used, kChunkBytes + kFrameHeaderBytes).size(),
            kChunkBytes + kFrameHeaderBytes);
  auto rested = connected_pair(SocketKind::kTcp);
  sender.lane(1).add_flow(1, std::move(rested.first));
  used = FileDescriptor();
  ASSERT_TRUE(sender.work.wait_ended(1));
  sender.work.queue(1, 2, 0, kChunkBytes, Mode::kInto);
  sender.wake();
  EXPECT_EQ(read_up_to(rested.second, kChunkBytes + kFrameHeaderBytes).size(),
            kChunkBytes + kFrameHeaderBytes);
}

TEST_P(SlowFlow, EndsThoughItHasNeverBeenInUse) {
  Rank sender(GetParam(), 1);
  FileDescriptor used = give_a_chunk_to_its_first_flow(sender);
  ASSERT_FALSE(read_up_to(used, 1).empty());
  auto rested = connected_pair(SocketKind::kTcp);
  sender.lane(1).add_flow(1, std::move(rested.first));
  rested.second = FileDescriptor();
  ASSERT_TRUE(sender.work.wait_ended(1));
  EXPECT_TRUE(sender.work.ended()[0].end.clean);
}

TEST_P(SlowFlow, LosesNothingOfChunksThatMayBeJoined) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    WireTraffic traffic;
    Rank sender(GetParam());
    Rank receiver(GetParam());
    sender.work.cut_runs_by(kChunkBytes);
    receiver.work.cut_runs_by(kChunkBytes);
    std::vector<std::unique_ptr<ShapedRelay>> wires;
    for (std::uint32_t i = 0; i < 4; ++i) {
      wires.push_back(
          join_shaped(sender.lane(i), 0, receiver.lane(i), 1, {.seed = 20 * seed + i}, traffic));
    }
    for (std::uint32_t sequence = 1; sequence <= 8; ++sequence) {
      sender.work.queue_run(1, sequence, 24, sequence % 2 == 0 ? Mode::kInto : Mode::kAbsorb);
      sender.wake();
    }
    ASSERT_TRUE(receiver.work.wait_received(8 * 24)) << "seed " << seed;
    ASSERT_TRUE(sender.work.wait_sent(8 * 24));
  }
}

TEST_P(SlowFlow, MayBeAnyAndReorderAsItLikes) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    WireTraffic traffic;
    Rank sender(GetParam());
    Rank receiver(GetParam());
    std::vector<std::unique_ptr<ShapedRelay>> wires;
    for (std::uint32_t i = 0; i < 4; ++i) {
      wires.push_back(
          join_shaped(sender.lane(i), 0, receiver.lane(i), 1, {.seed = 10 * seed + i}, traffic));
    }
    queue_chunks(sender.work, kChunks / 2, seed);
    sender.wake();
    ASSERT_TRUE(receiver.work.wait_received(kChunks / 2)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fasthorovod::transport
