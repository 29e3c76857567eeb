// Boards under real threads. For the thread sanitizer.
#include <gtest/gtest.h>

#include <thread>

#include "test/ops/collective.h"
#include "test/ops/threaded_boards.h"

namespace fasthorovod::ops {
namespace {

constexpr std::uint64_t kOperations = 40;
constexpr std::size_t kWindow = 4;

void start_operations(ThreadedBoards& boards, const CollectiveSpec& spec, int rank,
                      std::vector<Bytes>& buffers) {
  Node& node = boards.node(rank);
  for (std::uint64_t sequence = 1; sequence <= kOperations; ++sequence) {
    if (sequence > kWindow) node.finished.wait_beyond(sequence - kWindow - 1);
    Operation operation = operation_of(spec, rank, buffers[sequence - 1], sequence);
    operation.done = [&node](const core::Status& status) {
      EXPECT_TRUE(status);
      node.finished.ring();
    };
    node.board.start(std::move(operation));
  }
  node.finished.wait_beyond(kOperations - 1);
}

TEST(ChunkBoardThreads, LanesShareOperationsWithoutARace) {
  CollectiveSpec spec;
  spec.algorithm = find_algorithm("ring-allreduce");
  spec.network.size = kRanks;
  spec.elements = 1003;
  spec.chunk_bytes = 128;
  const std::vector<Bytes> inputs = inputs_of(spec);
  std::vector<std::vector<Bytes>> buffers;
  for (const Bytes& input : inputs) buffers.emplace_back(kOperations, input);
  ThreadedBoards boards;
  std::vector<std::jthread> starters;
  for (int rank = 0; rank < kRanks; ++rank) {
    starters.emplace_back([&, rank] {
      start_operations(boards, spec, rank, buffers[static_cast<std::size_t>(rank)]);
    });
  }
  starters.clear();
  boards.stop();
  const std::vector<Bytes> expected = expected_of(spec, inputs);
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    for (const Bytes& buffer : buffers[rank]) ASSERT_EQ(buffer, expected[rank]);
  }
}

}  // namespace
}  // namespace fasthorovod::ops
