// The bits of a result depend on the values alone. While others keep all processors busy, threads,
// chunks and flows come in another order every time; a hundred results must not tell.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

constexpr int kRuns = 100;

/// Threads that want every processor all the time.
class Load final {
 public:
  Load() {
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      threads_.emplace_back([this] {
        while (!over_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Load() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

struct World {
  std::string name;
  std::vector<std::string> hosts;  // of each rank
  int lanes = 1;
  int flows = 1;
};

class EngineBits : public ::testing::TestWithParam<World> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EngineBits,
                         ::testing::Values(World{"one_host", {"a", "a", "a"}},
                                           World{"a_host_each", {"a", "b", "c", "d"}, 1, 4},
                                           World{"uneven_hosts", {"a", "a", "b"}, 2, 2},
                                           World{"many_lanes", {"a", "b"}, 8, 1}),
                         [](const auto& instance) { return instance.param.name; });

/// By every way in which an engine sums: the caller's thread, the ordered and the named door.
Floats sums_of(Engine& engine, const Floats& values) {
  const std::string name = std::to_string(values.size());
  Floats run(values.size());
  Floats ordered(values.size());
  Floats named = values;
  const core::Status status = engine.run(call(OrderedKind::kAllreduce, values, run));
  EXPECT_TRUE(status) << status.error().message;
  const auto first = engine.submit_ordered(call(OrderedKind::kAllreduce, values, ordered));
  const auto second = engine.submit(allreduce_of(name, named));
  expect_success(first);
  expect_success(second);
  EXPECT_EQ(run, ordered);
  append(run, named);
  return run;
}

TEST_P(EngineBits, AreTheSameAHundredTimesUnderLoad) {
  const Load load;
  const auto size = static_cast<int>(GetParam().hosts.size());
  for (const std::size_t count : {std::size_t{999}, std::size_t{70'007}}) {
    std::vector<Floats> first(GetParam().hosts.size());
    run_as_threads(size,
                   [&](Engine& engine) {
                     const Floats values = numbers_of(engine.world().rank, count);
                     const Floats expected = sums_of(engine, values);
                     for (int run = 1; run < kRuns; ++run) {
                       ASSERT_EQ(sums_of(engine, values), expected) << "run " << run;
                     }
                     first[static_cast<std::size_t>(engine.world().rank)] = expected;
                   },
                   {.adjust = [](core::Config& config) {
                     const auto rank = static_cast<std::size_t>(config.rank);
                     config.host_identity = GetParam().hosts[rank];
                     config.lanes = GetParam().lanes;
                     config.flows = GetParam().flows;
                   }});
    for (const Floats& result : first) EXPECT_EQ(result, first[0]);
  }
}

}  // namespace
}  // namespace fasthorovod::ops::testing
