// What caches and memory of a machine leave of an all-reduce between two ranks of one host: the
// passes that it can not do without, by two threads, and as good as nothing else. The teams of
// host_team_bench.cc, which do the same passes, can come near these figures and not below them.
//   own_halves     buffers that are lent: each thread reduces half of both buffers into both, so
//                  each touches the same lines every time
//   through_areas  ordinary buffers: each copies the other's half in, reduces its own from there,
//                  and copies out what the other has reduced, so every line passes from one core's
//                  cache to the other's
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "bench/copy.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

using bench::count_bytes;

constexpr std::size_t kAtOnce = 16U << 10;     // bytes that are handed out at once
constexpr std::size_t kStripe = 128U << 10;    // bytes that are copied in at once
constexpr std::size_t kSlots = 4;              // stripes under way
constexpr std::array<float, 2> kValues{1, 2};  // of which the maximum is taken

/// How many stripes a rank has copied in, reduced and copied out.
struct alignas(64) Progress {
  std::atomic<std::size_t> in{0};
  std::atomic<std::size_t> summed{0};
  std::atomic<std::size_t> copied{0};
};

void wait(const std::atomic<std::size_t>& count, std::size_t least) {
  while (count.load() < least) __builtin_ia32_pause();
}

void reduce(std::byte* to, const std::byte* a, const std::byte* b, std::size_t bytes) {
  const std::array<const std::byte*, 2> sources{a, b};
  reduce_many(to, sources, bytes / sizeof(float), core::DataType::kFloat32, core::Reduction::kMax);
}

class TwoRanks {
 public:
  explicit TwoRanks(std::size_t bytes) : half_(bytes / 2) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      buffers_[rank].assign(bytes / sizeof(float), kValues[rank]);
      incoming_[rank].resize(kSlots * kStripe);
      outgoing_[rank].resize(kSlots * kStripe);
    }
  }

  void own_halves(std::size_t self) {
    const std::size_t first = self * half_;
    for (std::size_t at = first; at < first + half_; at += kAtOnce) {
      reduce(buffer(self) + at, buffer(0) + at, buffer(1) + at, kAtOnce);
      std::memcpy(buffer(1 - self) + at, buffer(self) + at, kAtOnce);
    }
  }

  /// start() comes before, on one thread alone.
  void through_areas(std::size_t self) {
    const std::size_t stripes = half_ / kStripe;
    for (std::size_t stripe = 0; stripe < stripes + 2; ++stripe) {
      if (stripe < stripes) copy_in(self, stripe);
      if (stripe >= 1 && stripe - 1 < stripes) reduce_own(self, stripe - 1);
      if (stripe >= 2) copy_out(self, stripe - 2);
    }
  }

  void start() {
    for (Progress& progress : progress_) progress.in = progress.summed = progress.copied = 0;
  }

  [[nodiscard]] bool all_are(float value) const {
    return std::ranges::all_of(buffers_, [value](const auto& buffer) {
      return std::ranges::all_of(buffer, [value](float v) { return v == value; });
    });
  }

 private:
  std::byte* buffer(std::size_t rank) {
    return std::as_writable_bytes(std::span(buffers_[rank])).data();
  }
  static std::byte* slot(std::vector<std::byte>& area, std::size_t stripe) {
    return area.data() + stripe % kSlots * kStripe;
  }

  void copy_in(std::size_t self, std::size_t stripe) {
    const std::size_t other = 1 - self;
    if (stripe >= kSlots) wait(progress_[other].summed, stripe - kSlots + 1);
    std::memcpy(slot(incoming_[self], stripe), buffer(self) + other * half_ + stripe * kStripe,
                kStripe);
    progress_[self].in = stripe + 1;
  }

  void reduce_own(std::size_t self, std::size_t stripe) {
    const std::size_t other = 1 - self;
    std::byte* const own = buffer(self) + self * half_ + stripe * kStripe;
    wait(progress_[other].in, stripe + 1);
    if (stripe >= kSlots) wait(progress_[other].copied, stripe - kSlots + 1);
    reduce(own, own, slot(incoming_[other], stripe), kStripe);
    std::memcpy(slot(outgoing_[self], stripe), own, kStripe);
    progress_[self].summed = stripe + 1;
  }

  void copy_out(std::size_t self, std::size_t stripe) {
    const std::size_t other = 1 - self;
    wait(progress_[other].summed, stripe + 1);
    std::memcpy(buffer(self) + other * half_ + stripe * kStripe, slot(outgoing_[other], stripe),
                kStripe);
    progress_[self].copied = stripe + 1;
  }

  const std::size_t half_;
  std::array<std::vector<float>, 2> buffers_;
  std::array<std::vector<std::byte>, 2> incoming_;  // what the other one reduces
  std::array<std::vector<std::byte>, 2> outgoing_;  // what this one has reduced
  std::array<Progress, 2> progress_;
};

/// Runs a rank's passes for both, each in a thread.
void on_both(benchmark::State& state, void (TwoRanks::*passes)(std::size_t)) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  TwoRanks ranks(bytes);
  std::barrier<> gate(2);
  std::atomic<bool> over = false;
  std::thread other([&] {
    for (gate.arrive_and_wait(); !over; gate.arrive_and_wait()) {
      (ranks.*passes)(1);
      gate.arrive_and_wait();
    }
  });
  for (auto iteration : state) {
    ranks.start();
    gate.arrive_and_wait();
    (ranks.*passes)(0);
    gate.arrive_and_wait();
  }
  over = true;
  gate.arrive_and_wait();
  other.join();
  if (!ranks.all_are(kValues[1])) state.SkipWithError("a wrong maximum");
  count_bytes(state, bytes);
}

void own_halves(benchmark::State& state) { on_both(state, &TwoRanks::own_halves); }
void through_areas(benchmark::State& state) { on_both(state, &TwoRanks::through_areas); }

BENCHMARK(own_halves)->ArgName("bytes")->Arg(1 << 20)->Arg(16 << 20)->Arg(64 << 20)->UseRealTime();
BENCHMARK(through_areas)
    ->ArgName("bytes")
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->Arg(64 << 20)
    ->UseRealTime();

}  // namespace
}  // namespace fasthorovod::ops
