// Overlapping process sets beside the world and beside the ordered door, all in flight at once and
// in another order on every rank, from seeds: every sum is right, and nothing waits for ever.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "test/ops/process_set_calls.h"

namespace fasthorovod::ops::testing {
namespace {

constexpr int kSets = 10;
constexpr int kTensors = 30;

struct Set {
  core::GroupId id = core::kWorldGroup;
  std::vector<int> ranks;
};

// The same on every rank: the world, and random sets.
std::vector<Set> make_sets(Engine& engine, std::mt19937& shared) {
  std::vector<Set> sets{{core::kWorldGroup, {}}};
  for (int rank = 0; rank < engine.world().size; ++rank) sets[0].ranks.push_back(rank);
  for (int i = 0; i < kSets; ++i) {
    Set set;
    for (int rank = 0; rank < engine.world().size; ++rank) {
      if (shared() % 3 != 0) set.ranks.push_back(rank);
    }
    const auto same = std::ranges::find(sets, set.ranks, &Set::ranks);
    if (set.ranks.empty() || same != sets.end()) continue;
    set.id = add_set(engine, fmt::format("add.{}", i), set.ranks);
    sets.push_back(set);
  }
  return sets;
}

float sum_of(const std::vector<int>& ranks) {
  float sum = 0;
  for (const int rank : ranks) sum += static_cast<float>(rank + 1);
  return sum;
}

class Storm final {
 public:
  Storm(Engine& engine, unsigned seed)
      : engine_(engine),
        shared_(seed),
        own_(seed * 100 + static_cast<unsigned>(engine.world().rank)),
        sets_(make_sets(engine, shared_)) {
    std::erase_if(sets_, [&](const Set& set) {
      return std::ranges::count(set.ranks, engine.world().rank) == 0;
    });
    for (const Set& set : sets_) {
      for (int i = 0; i < kTensors; ++i) calls_.push_back({&set, i, {}});
    }
    for (Call& call : calls_) {
      // Of the tensor, not of the rank: all ranks of a set must agree.
      std::mt19937 random(static_cast<unsigned>(call.tensor) + 1000 * call.set->id + seed);
      call.values.assign(1 + random() % (random() % 4 == 0 ? 400'000 : 2'000),
                         static_cast<float>(engine.world().rank + 1));
    }
    std::shuffle(calls_.begin(), calls_.end(), own_);
  }

  void run() {
    std::vector<core::Result<Handle>> handles;
    Floats ordered(50'000, 1.0F);
    for (Call& call : calls_) {
      handles.push_back(
          engine_.submit(allreduce_in(call.set->id, fmt::format("t{}", call.tensor), call.values)));
    }
    handles.push_back(engine_.submit_ordered(call(OrderedKind::kAllreduce, ordered, ordered)));
    for (const auto& handle : handles) expect_success(handle);
    for (const Call& call : calls_) {
      EXPECT_EQ(call.values, Floats(call.values.size(), sum_of(call.set->ranks)));
    }
    EXPECT_EQ(ordered.front(), static_cast<float>(engine_.world().size));
  }

 private:
  struct Call {
    const Set* set;
    int tensor;
    Floats values;
  };

  Engine& engine_;
  std::mt19937 shared_;
  std::mt19937 own_;
  std::vector<Set> sets_;
  std::vector<Call> calls_;
};

TEST(ProcessSets, RunInAnyOrderBesideTheWorld) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const int size = 2 + static_cast<int>(seed % 4);
    GroupOptions options;
    options.adjust = [seed](core::Config& config) {
      config.flows =
          1 + static_cast<int>(seed % 2);       // one flow: whatever parks it stops everything
      if (seed % 2 == 0) config.arena_mb = 16;  // hardly more than what is in flight
      config.fusion_threshold = seed % 3 == 0 ? 0 : 64U << 10;
    };
    run_as_threads(
        size, [seed](Engine& engine) { Storm(engine, seed).run(); }, options);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace fasthorovod::ops::testing
