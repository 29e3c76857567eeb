// Any order of submissions, messages, plans and deliveries, from seeds: every rank sees the same
// items, and each operation once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

using std::chrono::milliseconds;

/// What every rank submits in a step; the same on all ranks, but for the rows of all-gathers.
struct Program {
  std::vector<Request> requests;
};

Program random_program(std::mt19937& random) {
  Program program;
  const std::size_t count = 1 + random() % 12;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr std::array kKinds{OpKind::kAllreduce, OpKind::kAllreduce, OpKind::kAllreduce,
                                OpKind::kAllgather, OpKind::kBroadcast, OpKind::kBarrier};
    Request request = request_for(kKinds[random() % kKinds.size()], "t" + std::to_string(i));
    request.type = random() % 4 == 0 ? DataType::kInt32 : DataType::kFloat32;
    request.shape = {1 + static_cast<std::int64_t>(random() % 5), 3};
    program.requests.push_back(request);
  }
  const auto bundled_count = static_cast<std::uint32_t>(random() % (count + 1));
  for (std::size_t i = 0; i < bundled_count; ++i) {
    program.requests[i] = bundled(program.requests[i], "g", bundled_count);
  }
  return program;
}

class RandomRun final {
 public:
  explicit RandomRun(unsigned seed)
      : random_(seed),
        options_(random_options()),
        ranks_(options_),
        program_(random_program(random_)) {
    left_.resize(static_cast<std::size_t>(options_.size));
    for (int rank = 0; rank < options_.size; ++rank) begin_step(rank);
  }

  void run() {
    const auto size = static_cast<unsigned>(options_.size);
    for (int event = 0; event < 4000 && !is_finished(); ++event) {
      const int rank = static_cast<int>(random_() % size);
      ASSERT_TRUE(ranks_.random_event(rank, random_, [&] { submit_next(rank); }));
    }
    finish();
    check();
  }

 private:
  static constexpr int kSteps = 4;

  CoordinatorOptions random_options() {
    CoordinatorOptions options;
    options.size = 1 + static_cast<int>(random_() % 9);
    options.fusion_threshold = std::array{0u, 40u, 1u << 20}[random_() % 3];
    options.cache_capacity = std::array{0u, 1u, 3u, 100u}[random_() % 4];
    return options;
  }

  struct Progress {
    int step = 0;
    std::vector<Request> to_submit;
  };

  Progress& progress(int rank) { return left_[static_cast<std::size_t>(rank)]; }

  void begin_step(int rank) {
    std::vector<Request>& requests = progress(rank).to_submit;
    requests = program_.requests;
    std::shuffle(requests.begin(), requests.end(), random_);
    for (Request& request : requests) {
      if (request.op == OpKind::kAllgather) {
        request.shape.front() = rank + (progress(rank).step < 2 ? 1 : 0);
      }
    }
  }

  void submit_next(int rank) {
    Progress& own = progress(rank);
    if (own.to_submit.empty()) {
      if (own.step + 1 == kSteps) return;
      ++own.step;
      begin_step(rank);
    }
    const auto free =
        std::find_if(own.to_submit.begin(), own.to_submit.end(),
                     [&](const Request& request) { return !ranks_.in_flight(rank, request.name); });
    if (free == own.to_submit.end()) return;
    // A bundle is one call: all of it or nothing.
    if (!free->bundle.empty()) return submit_bundle(rank);
    ranks_.submit(rank, *free);
    own.to_submit.erase(free);
  }

  void submit_bundle(int rank) {
    std::vector<Request>& requests = progress(rank).to_submit;
    for (const Request& request : requests) {
      if (!request.bundle.empty() && ranks_.in_flight(rank, request.name)) return;
    }
    for (const Request& request : requests) {
      if (!request.bundle.empty()) ranks_.submit(rank, request);
    }
    std::erase_if(requests, [](const Request& request) { return !request.bundle.empty(); });
  }

  bool is_finished() {
    for (const Progress& progress : left_) {
      if (progress.step + 1 < kSteps || !progress.to_submit.empty()) return false;
    }
    return true;
  }

  void finish() {
    for (int round = 0; round < 20; ++round) {
      for (int rank = 0; rank < options_.size; ++rank) {
        for (std::size_t i = 0; i < program_.requests.size(); ++i) submit_next(rank);
      }
      ranks_.now += milliseconds(1);
      ranks_.settle();
    }
    ASSERT_TRUE(is_finished());
  }

  void check() {
    ranks_.expect_same_order();
    for (int rank = 0; rank < options_.size; ++rank) {
      for (const Request& request : program_.requests) {
        const auto& outcomes = ranks_.seen(rank).outcomes.at(request.name);
        EXPECT_EQ(outcomes.size(), static_cast<std::size_t>(kSteps)) << request.name;
        for (const auto& outcome : outcomes) EXPECT_FALSE(outcome.error.has_value());
      }
    }
  }

  std::mt19937 random_;
  CoordinatorOptions options_;
  SimulatedRanks ranks_;
  Program program_;
  std::vector<Progress> left_;
};

TEST(Coordinator, RunsEverythingOnceAndInOneOrderWhateverComesFirst) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun(seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace fasthorovod::core
