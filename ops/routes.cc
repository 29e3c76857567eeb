#include "ops/routes.h"

#include <cassert>
#include <utility>

namespace fasthorovod::ops {

bool Routes::start(Operation operation, const Start& how, const std::function<void(int)>& meet) {
  const OrderedKind kind = how.algorithm.kind;
  if (!operation.buffer.empty() && inside_hosts(kind, operation.members)) {
    return hosts_->start(operation, how.input, how.alone, meet);
  }
  const bool early = operation.early;
  assert(kind != OrderedKind::kAllreduce || how.input.data() == operation.buffer.data());
  operation.schedule = how.algorithm.build(how.shape);
  operation.early = early && may_go_early(operation.schedule);
  for_each_peer(operation, meet);
  board_.start(std::move(operation));
  return true;
}

bool Routes::inside_hosts(OrderedKind kind, const std::vector<int>& members) const {
  return hosts_ != nullptr && kind == OrderedKind::kAllreduce && HostPath::serves(world_, members);
}

bool Routes::stays_on_host(OrderedKind kind, const std::vector<int>& members) const {
  return inside_hosts(kind, members) && HostPath::is_one_host(world_, members);
}

void Routes::tell_mates(std::uint32_t group, std::uint64_t sequence,
                        const std::function<void(int)>& meet) {
  for (const int rank : hosts_->awaited(group, sequence)) {
    meet(rank);
    board_.say_ready_to(group, sequence, rank);
  }
}

void Routes::fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error) {
  board_.fail(group, sequence, error);
  if (hosts_ != nullptr) hosts_->fail(group, sequence, error);
}

std::vector<int> Routes::awaited(std::uint32_t group, std::uint64_t sequence) const {
  std::vector<int> ranks = board_.awaited(group, sequence);
  if (ranks.empty() && hosts_ != nullptr) ranks = hosts_->awaited(group, sequence);
  return ranks;
}

}  // namespace fasthorovod::ops
