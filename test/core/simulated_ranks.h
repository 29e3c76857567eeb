// A coordinator and the ranks that talk to it, without sockets: messages wait in queues until the
// test lets them through, plans go through their encoding, and time stands still unless the test
// moves it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/coordinator.h"
#include "core/response_cache.h"

namespace fasthorovod::core {

/// An all-reduce of float32.
Request allreduce(const std::string& name, std::vector<std::int64_t> shape = {4});
Request request_for(OpKind op, const std::string& name, std::vector<std::int64_t> shape = {4});
Request add_group(const std::string& name, std::vector<int> ranks);
Request remove_group(const std::string& name, std::vector<int> ranks);
Request in_group(GroupId group, Request request);
Request bundled(Request request, const std::string& bundle, std::uint32_t size);

/// What tests call a tensor: its name, or "2:name" in group 2.
std::string key_of(GroupId group, const std::string& name);

class SimulatedRanks final {
 public:
  explicit SimulatedRanks(CoordinatorOptions options);

  struct Outcome {
    std::uint64_t sequence = 0;
    std::optional<Error> error;
  };

  /// What a rank saw, in order.
  struct Seen {
    std::vector<PlanItem> items;
    std::map<std::string, std::vector<Outcome>> outcomes;  // of what it had in flight, by key
    std::vector<int> joins;                                // what join returned
    std::map<GroupId, std::vector<int>> groups;            // that it knows, with their ranks
  };

  /// A rank submits; the coordinator hears of it at the next send().
  void submit(int rank, const Request& request);
  void submit_everywhere(const Request& request);
  void join(int rank);

  /// Lets what a rank submitted through.
  Status send(int rank);
  void send_all();

  /// Asks for a plan and puts it on its way to every rank; false when there was none.
  bool plan(bool idle = true);

  /// A rank applies the next plan on its way to it, if there is one.
  bool deliver(int rank);

  /// One of: the rank submits (as `submit` does), its word gets through, it applies a plan, or some
  /// time passes and a plan is asked for. False when the coordinator refused its word.
  bool random_event(int rank, std::mt19937& random, const std::function<void()>& submit);

  /// Sends, plans and delivers until nothing moves.
  void settle();

  Coordinator& coordinator() { return coordinator_; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const Seen& seen(int rank) const { return at(rank).seen; }
  [[nodiscard]] bool in_flight(int rank, const std::string& key) const {
    return at(rank).in_flight.contains(key);
  }
  [[nodiscard]] const ResponseCache& cache(int rank) const { return at(rank).cache; }
  [[nodiscard]] std::size_t requests_sent() const { return requests_sent_; }
  [[nodiscard]] std::size_t bits_sent() const { return bits_sent_; }
  [[nodiscard]] const Plan& last_plan() const { return last_plan_; }

  /// The one error a tensor ended with on every rank; fails the test when that is not so.
  Error error_everywhere(const std::string& key) const;
  /// The same on the ranks that are named.
  Error error_on(const std::string& key, const std::vector<int>& ranks) const;
  /// Whether the last outcome of a tensor is success on every rank that is named.
  [[nodiscard]] bool ran(const std::string& key, const std::vector<int>& ranks) const;
  [[nodiscard]] bool ran_everywhere(const std::string& key) const;
  /// All ranks saw the same items.
  void expect_same_order() const;

  TimePoint now{};

 private:
  struct Rank {
    Submissions outbox;
    bool has_mail = false;
    std::deque<std::vector<std::byte>> plans;
    std::set<std::string> in_flight;
    ResponseCache cache;
    Seen seen;
  };

  static void apply(const PlanItem& item, Rank& self);
  [[nodiscard]] std::vector<int> all() const;
  [[nodiscard]] const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  Coordinator coordinator_;
  std::vector<Rank> ranks_;
  Plan last_plan_;
  std::size_t requests_sent_ = 0;
  std::size_t bits_sent_ = 0;
};

}  // namespace fasthorovod::core
