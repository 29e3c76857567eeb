// What the chunk board adds to an all-reduce: two ranks' boards in one thread, and between them a
// network that costs nothing, since a chunk is added or copied where its sender has it. So what an
// all-reduce takes beyond one addition and one memcpy of half the buffer, which run beside it, is
// the board's: to start the operation, and to take, place and book each chunk.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/copy.h"
#include "ops/algorithm_table.h"
#include "ops/chunk_board.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

using bench::count_bytes;

constexpr int kRanks = 2;

class TwoRanks {
 public:
  TwoRanks(std::size_t elements, std::size_t chunk_bytes)
      : elements_(elements), chunk_bytes_(chunk_bytes) {
    for (int rank = 0; rank < kRanks; ++rank) {
      Side& side = sides_.at(static_cast<std::size_t>(rank));
      side.values.assign(elements, static_cast<float>(rank + 1));
      side.board = std::make_unique<ChunkBoard>(
          [this](int, const core::Error& error) { fail(error); }, [] {});
    }
  }

  /// In place, on both ranks; returns when they are done.
  void allreduce() {
    ++sequence_;
    done_ = 0;
    for (int rank = 0; rank < kRanks; ++rank) start(rank);
    while (done_ < kRanks && error_.empty()) {
      const bool sent = send_from(0);
      if (!send_from(1) && !sent) error_ = "nothing moves any more";
    }
  }

  /// Empty while everything went well.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::uint64_t chunks() const { return chunks_; }

  /// One all-reduce, of which every value is looked at.
  [[nodiscard]] bool works() {
    sides_[0].values.assign(elements_, 1.0F);
    sides_[1].values.assign(elements_, 2.0F);
    allreduce();
    return error_.empty() && std::ranges::all_of(sides_, [](const Side& side) {
             return std::ranges::all_of(side.values, [](float value) { return value == 3.0F; });
           });
  }

 private:
  struct Side {
    std::unique_ptr<ChunkBoard> board;
    std::vector<float> values;
  };

  void fail(const core::Error& error) { error_ = error.message; }

  void start(int rank) {
    Side& side = sides_.at(static_cast<std::size_t>(rank));
    Operation operation;
    operation.sequence = sequence_;
    operation.members = {0, 1};
    operation.buffer = std::as_writable_bytes(std::span(side.values));
    operation.type = core::DataType::kFloat32;
    operation.schedule = find_algorithm("ring-allreduce")
                             ->build({.rank = rank,
                                      .size = kRanks,
                                      .element_bytes = sizeof(float),
                                      .elements = elements_,
                                      .block_elements = {},
                                      .chunk_bytes = chunk_bytes_});
    operation.done = [this](const core::Status& status) {
      ++done_;
      if (!status) fail(status.error());
    };
    side.board->start(std::move(operation));
  }

  /// All chunks that may leave. False: none.
  bool send_from(int rank) {
    ChunkBoard& board = *sides_.at(static_cast<std::size_t>(rank)).board;
    bool any = false;
    while (auto chunk = board.take(1 - rank)) {
      any = true;
      ++chunks_;
      chunk->header.payload_bytes = chunk->payload.size();
      deliver(rank, *chunk);
      board.sent(chunk->ticket);
    }
    return any;
  }

  void deliver(int from, const transport::OutgoingChunk& chunk) {
    ChunkBoard& board = *sides_.at(static_cast<std::size_t>(1 - from)).board;
    const auto arrival = board.arrive(from, chunk.header);
    if (!arrival) return fail(arrival.error());
    if (arrival->kind == transport::Arrival::Kind::kInto) {
      std::memcpy(arrival->into.data(), chunk.payload.data(), chunk.payload.size());
    } else if (arrival->kind == transport::Arrival::Kind::kAbsorb) {
      board.absorb(arrival->ticket, 0, chunk.payload);
    } else {
      error_ = "a chunk came before its operation";
      return;
    }
    board.received(arrival->ticket);
  }

  const std::size_t elements_;
  const std::size_t chunk_bytes_;
  std::uint64_t sequence_ = 0;
  std::uint64_t chunks_ = 0;
  int done_ = 0;
  std::string error_;
  std::array<Side, kRanks> sides_;
};

/// The first argument is the bytes of the buffer, the second those of the largest chunk.
void allreduce_on_boards(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  TwoRanks ranks(bytes / sizeof(float), static_cast<std::size_t>(state.range(1)));
  bool works = ranks.works();
  const std::uint64_t before = ranks.chunks();
  for (auto unused : state) ranks.allreduce();
  const std::uint64_t chunks = ranks.chunks() - before;
  works = works && ranks.works();
  if (!works) return state.SkipWithError(("wrong values; " + ranks.error()).c_str());
  state.counters["chunks"] = static_cast<double>(chunks) / static_cast<double>(state.iterations());
  count_bytes(state, bytes);
}

/// The bytes alone, of both ranks: each adds half a buffer and copies the other half.
void add_and_copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t half = bytes / 2;
  std::vector<std::byte> first(bytes);
  std::vector<std::byte> second(bytes);
  const auto add = [&](std::byte* to, const std::byte* from) {
    reduce_into(to, from, half / sizeof(float), core::DataType::kFloat32, core::Reduction::kSum);
  };
  for (auto unused : state) {
    add(first.data(), second.data());
    add(second.data() + half, first.data() + half);
    std::memcpy(second.data(), first.data(), half);
    std::memcpy(first.data() + half, second.data() + half, half);
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

BENCHMARK(add_and_copy)->Arg(4 << 10)->Arg(1 << 20)->Arg(16 << 20);
BENCHMARK(allreduce_on_boards)
    ->Args({4 << 10, 256 << 10})
    ->Args({1 << 20, 32 << 10})
    ->Args({1 << 20, 253 << 10})
    ->Args({16 << 20, 32 << 10})
    ->Args({16 << 20, 253 << 10});

}  // namespace
}  // namespace fasthorovod::ops
