// What the coordinator decided: which operations run, in one order that is the same on every rank.
//
// Plans are numbered from 1 and arrive in order. A rank applies a plan by first handing it to its
// response cache (ResponseCache::apply), which makes the cache changes and fills in the tensors
// that travelled by position, then starting its items in order. Immutable values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::core {

/// One tensor of a plan item: enough for a rank that never submitted it (it has joined) to take
/// part with zeros.
///
/// A plan as the coordinator makes it, and as it travels, says only the position of a cached
/// tensor: the other fields are empty until ResponseCache::apply fills them in.
struct PlanTensor {
  std::string name{};
  std::vector<std::int64_t> shape{};  // of the lowest rank that submitted it
  // All-gather: dimension 0 of every rank of the world, in order; 0 for those not in the group.
  std::vector<std::int64_t> first_dimensions{};
  std::optional<std::uint32_t> cache_position{};

  friend bool operator==(const PlanTensor&, const PlanTensor&) = default;
};

/// One collective: one tensor, or several fused in this order (all-reduces only), run as operation
/// (group, sequence). All ranks get it; those of the group execute it.
struct PlanItem {
  GroupId group = kWorldGroup;  // of a change of groups that has no error: the one that changes
  std::uint64_t sequence = 0;   // counts the group's operations from 1, failed ones too
  OpKind op = OpKind::kAllreduce;
  DataType type = DataType::kFloat32;
  Reduction reduction = Reduction::kSum;
  int root = -1;
  double prescale = 1.0;
  double postscale = 1.0;
  CodecChoice codec{};
  std::vector<PlanTensor> tensors;
  // Set: nothing moves, every pending handle of these tensors fails with it.
  std::optional<Error> error;
  int last_joined = -1;        // join only: the rank that joined last, which is what join() returns
  std::vector<int> members{};  // changes of groups without error: the ranks of the group
};

/// A change of the response cache, decided by the coordinator alone so that all ranks hold the same
/// cache. An insertion brings all that there is to store, so it does not matter whether a rank
/// submitted the tensor itself.
struct CacheChange {
  std::uint32_t position = 0;
  bool insert = true;  // false: the position is free again, and the rest is empty
  Request request{};   // of the lowest rank that submitted it
  // All-gather: dimension 0 of every rank; a rank's own request differs from `request` by it alone.
  std::vector<std::int64_t> first_dimensions{};

  friend bool operator==(const CacheChange&, const CacheChange&) = default;
};

struct Plan {
  std::uint64_t number = 0;
  std::vector<CacheChange> cache_changes;
  std::vector<PlanItem> items;
};

}  // namespace fasthorovod::core
