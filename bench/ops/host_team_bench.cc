// All-reduce among ranks of one host through shared memory, against memcpy of the same bytes in the
// same run. Each rank is a thread with a team, an arena and a buffer of its own, which lies in the
// arena where it is lent; arenas are mapped once, which is all that a process each would change.
// What a machine allows two ranks is measured by host_memory_bench.cc.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <future>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "bench/copy.h"
#include "ops/host_team.h"

namespace fasthorovod::ops {
namespace {

using bench::copy;
using bench::count_bytes;
using transport::Arena;

constexpr std::size_t kHeapBytes = 64U << 20;
constexpr std::size_t kLentBytes = 64U << 20;
constexpr std::size_t kLargestArea = 8U << 20;

struct Rank {
  core::World world;
  Arena arena = *Arena::create(HostTeam::table_bytes() + kHeapBytes + kLentBytes);
  transport::ArenaHeap heap{arena, arena.bytes().subspan(HostTeam::table_bytes(), kHeapBytes)};
  std::unique_ptr<HostTeam> team;
  std::vector<float> ordinary;
  std::span<float> values;  // these, or some of the arena
};

class Host {
 public:
  Host(int size, std::size_t elements, bool lent) : elements_(elements) {
    for (int number = 0; number < size; ++number) {
      ranks_.push_back(std::make_unique<Rank>());
      ranks_.back()->world.rank = number;
      place_values(*ranks_.back(), lent);
      std::ranges::fill(ranks_.back()->values, static_cast<float>(number));
    }
    std::vector<HostSeat> seats;
    seats.reserve(ranks_.size());
    for (const auto& rank : ranks_) seats.push_back({rank->world.rank, rank->arena.bytes()});
    for (const auto& rank : ranks_) {
      rank->team =
          std::make_unique<HostTeam>(rank->world, seats, rank->heap, kLargestArea, HostHooks{});
    }
  }
  ~Host() {
    for (const auto& rank : ranks_) rank->team->stop({core::ErrorCode::kShutdown, ""});
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// On all ranks, in place; until the last one is done.
  void allreduce() {
    ++sequence_;
    std::vector<std::promise<void>> done(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) start(*ranks_[rank], done[rank]);
    for (auto& promise : done) promise.get_future().wait();
  }

  [[nodiscard]] bool all_are(float value) const {
    return std::ranges::all_of(ranks_, [value](const auto& rank) {
      return std::ranges::all_of(rank->values, [value](float v) { return v == value; });
    });
  }

 private:
  void place_values(Rank& rank, bool lent) const {
    if (lent) {
      auto* const values = reinterpret_cast<float*>(rank.arena.bytes().last(kLentBytes).data());
      rank.values = {values, elements_};
    } else {
      rank.ordinary.resize(elements_);
      rank.values = rank.ordinary;
    }
  }

  void start(Rank& rank, std::promise<void>& done) {
    std::vector<int> all(ranks_.size());
    std::iota(all.begin(), all.end(), 0);
    HostOperation operation;
    operation.sequence = sequence_;
    operation.layout = lay_out({all}, rank.world.rank, elements_, sizeof(float), kLargestArea);
    operation.members = all;
    operation.input = std::as_bytes(rank.values);
    operation.output = std::as_writable_bytes(rank.values);
    operation.type = core::DataType::kFloat32;
    operation.reduction = core::Reduction::kMax;  // in place again and again: sums would overflow
    operation.area = rank.team->reserve(operation.layout.area_bytes(), Door::kNamed);
    operation.done = [&done](const core::Status&) { done.set_value(); };
    rank.team->start(std::move(operation));
  }

  const std::size_t elements_;
  std::uint64_t sequence_ = 0;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

void allreduce(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto ranks = static_cast<int>(state.range(1));
  Host host(ranks, bytes / sizeof(float), state.range(2) != 0);
  host.allreduce();  // touches the arenas
  for (auto iteration : state) host.allreduce();
  if (!host.all_are(static_cast<float>(ranks - 1))) state.SkipWithError("a wrong maximum");
  count_bytes(state, bytes);
}

BENCHMARK(copy)->Arg(4 << 10)->Arg(1 << 20)->Arg(16 << 20)->Arg(64 << 20)->UseRealTime();
BENCHMARK(allreduce)
    ->ArgNames({"bytes", "ranks", "lent"})
    ->ArgsProduct({{4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}, {2, 4}, {0, 1}})
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace fasthorovod::ops
