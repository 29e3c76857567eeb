#include "test/core/simulated_ranks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "core/control_message.h"

namespace fasthorovod::core {

Request request_for(OpKind op, const std::string& name, std::vector<std::int64_t> shape) {
  Request request;
  request.name = name;
  request.op = op;
  request.shape = std::move(shape);
  if (op == OpKind::kBroadcast) request.root = 0;
  return request;
}

Request allreduce(const std::string& name, std::vector<std::int64_t> shape) {
  return request_for(OpKind::kAllreduce, name, std::move(shape));
}

Request add_group(const std::string& name, std::vector<int> ranks) {
  Request request = request_for(OpKind::kAddGroup, name, {});
  request.members = std::move(ranks);
  return request;
}

Request remove_group(const std::string& name, std::vector<int> ranks) {
  Request request = add_group(name, std::move(ranks));
  request.op = OpKind::kRemoveGroup;
  return request;
}

Request in_group(GroupId group, Request request) {
  request.group = group;
  return request;
}

std::string key_of(GroupId group, const std::string& name) {
  return group == kWorldGroup ? name : std::to_string(group) + ":" + name;
}

Request bundled(Request request, const std::string& bundle, std::uint32_t size) {
  request.bundle = bundle;
  request.bundle_size = size;
  return request;
}

SimulatedRanks::SimulatedRanks(CoordinatorOptions options)
    : coordinator_(options), ranks_(static_cast<std::size_t>(options.size)) {}

void SimulatedRanks::submit(int rank, const Request& request) {
  Rank& self = at(rank);
  self.in_flight.insert(key_of(request.group, request.name));
  self.has_mail = true;
  if (const auto position = self.cache.find(request)) {
    set_bit(self.outbox.cached, *position);
    ++bits_sent_;
  } else {
    self.outbox.requests.push_back(request);
    ++requests_sent_;
  }
}

void SimulatedRanks::submit_everywhere(const Request& request) {
  for (int rank = 0; rank < size(); ++rank) submit(rank, request);
}

void SimulatedRanks::join(int rank) {
  at(rank).outbox.joined = true;
  at(rank).has_mail = true;
}

Status SimulatedRanks::send(int rank) {
  Rank& self = at(rank);
  Submissions sent = std::exchange(self.outbox, {});
  self.outbox.plans_applied = sent.plans_applied;
  self.has_mail = false;
  const auto message = decode(encode(sent));
  if (!message) return message.error();
  return coordinator_.submit(rank, std::get<Submissions>(*message), now);
}

void SimulatedRanks::send_all() {
  for (int rank = 0; rank < size(); ++rank) {
    if (!at(rank).has_mail) continue;
    const Status status = send(rank);
    EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  }
}

bool SimulatedRanks::plan(bool idle) {
  auto plan = coordinator_.take_plan(now, idle);
  if (!plan) return false;
  last_plan_ = *plan;
  const std::vector<std::byte> bytes = encode(*plan);
  for (Rank& rank : ranks_) rank.plans.push_back(bytes);
  return true;
}

bool SimulatedRanks::random_event(int rank, std::mt19937& random,
                                  const std::function<void()>& submit) {
  switch (random() % 4) {
    case 0:
      submit();
      return true;
    case 1:
      return send(rank).has_value();
    case 2:
      now += std::chrono::microseconds(random() % 700);
      plan(random() % 2 == 0);
      return true;
    default:
      deliver(rank);
      return true;
  }
}

bool SimulatedRanks::deliver(int rank) {
  Rank& self = at(rank);
  if (self.plans.empty()) return false;
  auto message = decode(self.plans.front());
  self.plans.pop_front();
  EXPECT_TRUE(message.has_value());
  if (!message) return true;
  Plan plan = std::get<Plan>(*std::move(message));
  const Status status = self.cache.apply(plan, rank);
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  EXPECT_EQ(plan.number, self.outbox.plans_applied + 1);
  self.outbox.plans_applied = plan.number;
  for (PlanItem& item : plan.items) {
    apply(item, self);
    self.seen.items.push_back(std::move(item));
  }
  return true;
}

void SimulatedRanks::apply(const PlanItem& item, Rank& self) {
  if (item.op == OpKind::kJoin) self.seen.joins.push_back(item.error ? -1 : item.last_joined);
  if (item.op == OpKind::kAddGroup && !item.error) self.seen.groups[item.group] = item.members;
  if (item.op == OpKind::kRemoveGroup && !item.error) self.seen.groups.erase(item.group);
  const GroupId group = changes_groups(item.op) ? kWorldGroup : item.group;
  for (const PlanTensor& tensor : item.tensors) {
    const std::string key = key_of(group, tensor.name);
    if (self.in_flight.erase(key) == 0) continue;
    self.seen.outcomes[key].push_back({item.sequence, item.error});
  }
}

void SimulatedRanks::settle() {
  send_all();
  while (plan()) {
    for (int rank = 0; rank < size(); ++rank) {
      while (deliver(rank)) {
      }
    }
    send_all();
  }
}

std::vector<int> SimulatedRanks::all() const {
  std::vector<int> ranks(ranks_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Error SimulatedRanks::error_everywhere(const std::string& key) const {
  return error_on(key, all());
}

Error SimulatedRanks::error_on(const std::string& key, const std::vector<int>& ranks) const {
  Error error;
  for (const int rank : ranks) {
    const auto found = seen(rank).outcomes.find(key);
    if (found == seen(rank).outcomes.end() || !found->second.back().error) {
      ADD_FAILURE() << key << " did not fail on rank " << rank;
      continue;
    }
    const Error& own = *found->second.back().error;
    if (rank != ranks.front()) {
      EXPECT_EQ(own.message, error.message);
      EXPECT_EQ(own.code, error.code);
    }
    error = own;
  }
  return error;
}

bool SimulatedRanks::ran(const std::string& key, const std::vector<int>& ranks) const {
  for (const int rank : ranks) {
    const auto found = seen(rank).outcomes.find(key);
    if (found == seen(rank).outcomes.end() || found->second.back().error) return false;
  }
  return true;
}

bool SimulatedRanks::ran_everywhere(const std::string& key) const { return ran(key, all()); }

void SimulatedRanks::expect_same_order() const {
  const auto& first = seen(0).items;
  std::map<GroupId, std::uint64_t> last;
  for (const PlanItem& item : first) {
    if (changes_groups(item.op)) {
      EXPECT_EQ(item.sequence, ++last[kWorldGroup]);
    } else {
      EXPECT_EQ(item.sequence, ++last[item.group]);
    }
  }
  for (int rank = 1; rank < size(); ++rank) {
    const auto& items = seen(rank).items;
    ASSERT_EQ(items.size(), first.size()) << "rank " << rank;
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(items[i].group, first[i].group);
      EXPECT_EQ(items[i].sequence, first[i].sequence);
      EXPECT_EQ(items[i].op, first[i].op);
      EXPECT_EQ(items[i].tensors, first[i].tensors);
      EXPECT_EQ(items[i].error.has_value(), first[i].error.has_value());
    }
  }
}

}  // namespace fasthorovod::core
