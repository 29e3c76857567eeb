// The ring between hosts under real threads: lanes move pieces while another thread of the rank
// fills the area, opens gates and empties it. For the thread sanitizer.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "ops/algorithms/host_ring.h"
#include "test/ops/threaded_boards.h"

namespace fasthorovod::ops {
namespace {

constexpr std::uint64_t kElements = 3001;

/// One rank, alone on its host, in one operation.
struct LoneRank {
  HostLayout layout;
  std::vector<float> values = std::vector<float>(kElements);  // input, then output
  std::vector<float> area;
  std::vector<bool> over;  // by piece; guarded by the mutex, as is `done`
  bool done = false;
  std::mutex mutex;
  std::condition_variable changed;
};

void note(LoneRank& rank, std::vector<std::uint32_t> pieces, bool done) {
  const std::lock_guard lock(rank.mutex);
  for (const std::uint32_t piece : pieces) rank.over[piece] = true;
  rank.done = done;
  rank.changed.notify_all();
}

Operation operation_of(LoneRank& rank) {
  Operation operation;
  operation.group = wire_group(5, Door::kOrdered);
  operation.sequence = 1;
  operation.title = "a sum";
  operation.schedule = host_ring(rank.layout, 64);
  operation.members.resize(kRanks);
  std::iota(operation.members.begin(), operation.members.end(), 0);
  operation.buffer = std::as_writable_bytes(std::span(rank.area));
  operation.type = core::DataType::kFloat32;
  operation.held = true;
  operation.piece_done = [&rank](std::uint32_t piece) { note(rank, {piece}, false); };
  operation.done = [&rank](const core::Status& status) {
    EXPECT_TRUE(status);
    note(rank, {}, true);
  };
  return operation;
}

void copy_out(LoneRank& rank, std::uint32_t piece) {
  std::unique_lock lock(rank.mutex);
  rank.changed.wait(lock, [&] { return rank.over[piece]; });
  lock.unlock();
  const ByteSpan span = rank.layout.piece(piece);
  std::memcpy(&rank.values[span.offset / sizeof(float)],
              &rank.area[rank.layout.area_offset(piece, 0) / sizeof(float)], span.bytes);
}

void run(LoneRank& rank, ChunkBoard& board) {
  board.start(operation_of(rank));
  const HostLayout& layout = rank.layout;
  for (std::uint32_t piece = 0; piece < layout.pieces; ++piece) {
    if (piece >= layout.slots) copy_out(rank, piece - layout.slots);
    const ByteSpan span = layout.piece(piece);
    std::memcpy(&rank.area[layout.area_offset(piece, 0) / sizeof(float)],
                &rank.values[span.offset / sizeof(float)], span.bytes);
    board.open_gates(wire_group(5, Door::kOrdered), 1, piece + 1);
  }
  for (std::uint32_t piece = layout.pieces - layout.slots; piece < layout.pieces; ++piece) {
    copy_out(rank, piece);
  }
  std::unique_lock lock(rank.mutex);
  rank.changed.wait(lock, [&] { return rank.done; });
}

TEST(HostRingThreads, PiecesPassThroughTheAreaWithoutARace) {
  std::array<LoneRank, kRanks> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    LoneRank& self = ranks[index(rank)];
    self.layout = lay_out({{0}, {1}, {2}}, rank, kElements, sizeof(float), 4096);
    self.area.resize(self.layout.area_bytes() / sizeof(float));
    self.over.resize(self.layout.pieces);
    for (std::size_t i = 0; i < kElements; ++i) {
      self.values[i] = static_cast<float>(i * index(rank + 1));
    }
  }
  ThreadedBoards boards;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] { run(ranks[index(rank)], boards.node(rank).board); });
    }
  }
  boards.stop();
  for (const LoneRank& rank : ranks) {
    for (std::size_t i = 0; i < kElements; ++i) {
      ASSERT_EQ(rank.values[i], static_cast<float>(6 * i)) << i;
    }
  }
}

}  // namespace
}  // namespace fasthorovod::ops
