// Boards under the lanes of real sockets, several a rank and not the same number on each: how they
// share operations, and what the ends of their flows mean. Also for the thread sanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "ops/lane_places.h"
#include "test/ops/collective.h"
#include "test/transport/socket_pair.h"
#include "transport/lane_set.h"

namespace fasthorovod::ops {
namespace {

using testing::HasSubstr;
using transport::LaneSet;

constexpr auto kPatience = std::chrono::seconds(60);

/// One rank: its board, its lanes, and what came of its operations.
class Rank final {
 public:
  Rank(int lanes, int flows)
      : board_([this](int peer, core::Error error) { fault(peer, std::move(error)); },
               [this] { lanes_->wake(); }, {}, [flows](int) { return flows; }),
        lanes_(std::make_unique<LaneSet>(
            std::move(start_lanes({.lanes = lanes, .flows = 1}, board_,
                                  std::make_shared<transport::RateBoard>()))
                .value())) {}
  ~Rank() { lanes_->stop(); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void start(Operation operation) {
    operation.done = [this](const core::Status& status) {
      note([&] { ++(status ? succeeded_ : failed_); });
    };
    board_.start(std::move(operation));
  }
  bool wait_succeeded(std::size_t count) {
    return wait([&] { return succeeded_ >= count; });
  }
  bool wait_fault() {
    return wait([&] { return !faults_.empty(); });
  }
  [[nodiscard]] std::vector<core::Error> faults() {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
  LaneSet& lanes() { return *lanes_; }

 private:
  void fault(int peer, core::Error error) {
    EXPECT_EQ(error.culprit, peer);
    note([&] { faults_.push_back(std::move(error)); });
  }
  template <typename Change>
  void note(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  template <typename Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t succeeded_ = 0;
  std::size_t failed_ = 0;
  std::vector<core::Error> faults_;
  ChunkBoard board_;
  std::unique_ptr<LaneSet> lanes_;
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

/// Ranks with so many lanes each; `flows` between every two.
Ranks ranks_with(const std::vector<int>& lanes, int flows) {
  Ranks ranks;
  for (const int count : lanes) ranks.push_back(std::make_unique<Rank>(count, flows));
  for (std::size_t a = 0; a < ranks.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      for (std::uint32_t flow = 0; std::cmp_less(flow, flows); ++flow) {
        auto pair = transport::connected_pair(transport::SocketKind::kTcp);
        ranks[a]->lanes().add_flow(static_cast<int>(b), flow, std::move(pair.first));
        ranks[b]->lanes().add_flow(static_cast<int>(a), flow, std::move(pair.second));
      }
    }
  }
  return ranks;
}

CollectiveSpec spec_of(const char* algorithm, int size, std::uint64_t elements) {
  CollectiveSpec spec;
  spec.algorithm = find_algorithm(algorithm);
  spec.network.size = size;
  spec.elements = elements;
  spec.chunk_bytes = 4096;
  return spec;
}

// Ranks run up to four operations ahead of each other, so flows are parked, on whichever lane.
TEST(BoardLanes, ShareManyOperationsOfOneOrder) {
  constexpr std::size_t kOperations = 60;
  constexpr std::size_t kWindow = 4;
  const CollectiveSpec spec = spec_of("ring-allreduce", 3, 20'011);
  const std::vector<Bytes> inputs = inputs_of(spec);
  std::vector<std::vector<Bytes>> buffers;
  for (const Bytes& input : inputs) buffers.emplace_back(kOperations, input);
  const Ranks ranks = ranks_with({1, 2, 3}, 6);
  {
    std::vector<std::jthread> starters;
    for (int rank = 0; rank < 3; ++rank) {
      starters.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        for (std::size_t i = 0; i < kOperations; ++i) {
          const std::size_t before = i < kWindow ? 0 : i - kWindow + 1;
          ASSERT_TRUE(ranks[at]->wait_succeeded(before));
          ranks[at]->start(operation_of(spec, rank, buffers[at][i], i + 1));
        }
        EXPECT_TRUE(ranks[at]->wait_succeeded(kOperations));
      });
    }
  }
  const std::vector<Bytes> expected = expected_of(spec, inputs);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(ranks[rank]->faults().empty());
    for (const Bytes& buffer : buffers[rank]) ASSERT_EQ(buffer, expected[rank]);
  }
}

// The root is done when its bytes have left; the others pass them on after it is gone.
TEST(BoardLanes, LetARankLeaveWhileOthersStillOweEachOther) {
  for (int round = 0; round < 20; ++round) {
    const CollectiveSpec spec = spec_of("chain-broadcast", 3, 300'000);
    const std::vector<Bytes> inputs = inputs_of(spec);
    std::vector<Bytes> buffers = inputs;
    const Ranks ranks = ranks_with({2, 3, 2}, 4);
    for (int rank = 0; rank < 3; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      ranks[at]->start(operation_of(spec, rank, buffers[at], 1));
    }
    ASSERT_TRUE(ranks[0]->wait_succeeded(1));
    ranks[0]->lanes().stop();
    for (std::size_t rank = 1; rank < 3; ++rank) {
      ASSERT_TRUE(ranks[rank]->wait_succeeded(1));
      EXPECT_TRUE(ranks[rank]->faults().empty()) << ranks[rank]->faults()[0].message;
      EXPECT_EQ(buffers[rank], inputs[0]);
    }
  }
}

TEST(BoardLanes, MissARankOnceAllItsLanesHaveEnded) {
  const CollectiveSpec spec = spec_of("ring-allreduce", 2, 1000);
  std::vector<Bytes> buffers = inputs_of(spec);
  const Ranks ranks = ranks_with({3, 2}, 6);
  ranks[0]->start(operation_of(spec, 0, buffers[0], 1));
  ranks[1]->lanes().stop();
  ASSERT_TRUE(ranks[0]->wait_fault());
  ranks[0]->lanes().stop();
  EXPECT_EQ(ranks[0]->faults().size(), 1U);
  EXPECT_EQ(ranks[0]->faults()[0].code, core::ErrorCode::kPeerLost);
  EXPECT_THAT(ranks[0]->faults()[0].message, HasSubstr("during operation 1: "));
}

TEST(BoardLanes, FailTheOperationByNameWhenOneFlowOfOneLaneDies) {
  const CollectiveSpec spec = spec_of("ring-allreduce", 2, 1'000'000);
  std::vector<Bytes> buffers = inputs_of(spec);
  const Ranks ranks = ranks_with({3, 2}, 5);
  auto dying = transport::connected_pair(transport::SocketKind::kTcp);
  ranks[0]->lanes().add_flow(1, 5, std::move(dying.first));
  ranks[0]->start(operation_of(spec, 0, buffers[0], 1));  // and not on rank 1
  transport::reset(std::move(dying.second));
  ASSERT_TRUE(ranks[0]->wait_fault());
  EXPECT_EQ(ranks[0]->faults()[0].culprit, 1);
  EXPECT_THAT(ranks[0]->faults()[0].message, HasSubstr("during operation 1: "));
}

}  // namespace
}  // namespace fasthorovod::ops
