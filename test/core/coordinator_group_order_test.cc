// Overlapping groups beside the world, in any order of submissions, messages, plans and deliveries,
// from seeds: every rank sees the same items, and each operation runs once in its group.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

using Ranks = std::vector<int>;

class RandomGroups final {
 public:
  explicit RandomGroups(unsigned seed)
      : random_(seed), options_(random_options()), ranks_(options_) {
    groups_[kWorldGroup] = all();
    const std::size_t wanted = random_() % 5;
    for (std::size_t i = 0; i < wanted; ++i) add(random_ranks());
    to_submit_.resize(groups_[kWorldGroup].size());
    for (const auto& [id, members] : groups_) write_program(id, members);
    for (auto& requests : to_submit_) std::shuffle(requests.begin(), requests.end(), random_);
  }

  void run() {
    for (int event = 0; event < 3000 && !is_submitted(); ++event) {
      const int rank = static_cast<int>(random_() % to_submit_.size());
      ASSERT_TRUE(ranks_.random_event(rank, random_, [&] { submit_next(rank); }));
    }
    while (!is_submitted()) {
      for (int rank : all()) submit_next(rank);
      ranks_.settle();
    }
    ranks_.now += std::chrono::milliseconds(1);
    ranks_.settle();
    check();
  }

 private:
  static constexpr std::size_t kSteps = 3;

  CoordinatorOptions random_options() {
    CoordinatorOptions options;
    options.size = 1 + static_cast<int>(random_() % 9);
    options.fusion_threshold = std::array{0u, 40u, 1u << 20}[random_() % 3];
    options.cache_capacity = std::array{0u, 2u, 5u, 100u}[random_() % 4];
    return options;
  }

  Ranks all() const {
    Ranks ranks(static_cast<std::size_t>(options_.size));
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
    return ranks;
  }

  Ranks random_ranks() {
    Ranks ranks;
    for (const int rank : all()) {
      if (random_() % 2 == 0) ranks.push_back(rank);
    }
    return ranks;
  }

  // One that is there already, or empty, is refused: there is only one of each.
  void add(const Ranks& members) {
    ranks_.submit_everywhere(add_group("add", members));
    ranks_.settle();
    const bool is_new = !members.empty() && std::ranges::none_of(groups_, [&](const auto& group) {
      return group.second == members;
    });
    EXPECT_EQ(ranks_.ran_everywhere("add"), is_new);
    if (is_new) groups_[ranks_.seen(0).groups.rbegin()->first] = members;
  }

  // The same names in every group, each several times.
  void write_program(GroupId id, const Ranks& members) {
    for (int i = 0; i < 5; ++i) {
      constexpr std::array kKinds{OpKind::kAllreduce, OpKind::kAllreduce, OpKind::kAllgather,
                                  OpKind::kBarrier};
      Request request = request_for(kKinds[random_() % kKinds.size()], "t" + std::to_string(i),
                                    {1 + static_cast<std::int64_t>(id), 3});
      for (const int rank : members) {
        if (request.op == OpKind::kAllgather) request.shape.front() = rank;
        auto& requests = to_submit_[static_cast<std::size_t>(rank)];
        for (std::size_t step = 0; step < kSteps; ++step) requests.push_back(in_group(id, request));
      }
    }
  }

  void submit_next(int rank) {
    auto& requests = to_submit_[static_cast<std::size_t>(rank)];
    const auto free = std::ranges::find_if(requests, [&](const Request& request) {
      return !ranks_.in_flight(rank, key_of(request.group, request.name));
    });
    if (free == requests.end()) return;
    ranks_.submit(rank, *free);
    requests.erase(free);
  }

  bool is_submitted() const {
    return std::ranges::all_of(to_submit_, [](const auto& requests) { return requests.empty(); });
  }

  void check() {
    ranks_.expect_same_order();
    for (const auto& [id, members] : groups_) {
      for (const int rank : members) {
        for (int i = 0; i < 5; ++i) {
          const auto& outcomes = ranks_.seen(rank).outcomes.at(key_of(id, "t" + std::to_string(i)));
          EXPECT_EQ(outcomes.size(), kSteps);
          for (const auto& outcome : outcomes) EXPECT_FALSE(outcome.error.has_value());
        }
      }
    }
  }

  std::mt19937 random_;
  CoordinatorOptions options_;
  SimulatedRanks ranks_;
  std::map<GroupId, Ranks> groups_;
  std::vector<std::vector<Request>> to_submit_;  // by rank
};

TEST(Groups, RunEverythingOnceWhateverComesFirst) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomGroups(seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace fasthorovod::core
