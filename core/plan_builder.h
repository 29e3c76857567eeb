// Makes a plan of what is ready: fuses, uses and changes the response cache, numbers the
// operations. Thread: owner.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/cache_ledger.h"
#include "core/fusion_planner.h"
#include "core/plan.h"
#include "core/ready_list.h"

namespace fasthorovod::core {

/// What of a ready unit runs as one operation, or is fused with others of its kind.
struct FusionPart {
  std::vector<KnownTensor*> tensors;
  FusionUnit unit;
};

/// Cuts units into parts: a bundle into one part for each kind of all-reduce in it; other
/// operations one by one. Units with an error, joins and changes of groups have none.
std::vector<FusionPart> cut_into_parts(const ReadyUnit& unit);

class PlanBuilder final {
 public:
  PlanBuilder(CacheLedger& ledger, std::uint64_t fusion_threshold)
      : ledger_(ledger), fusion_threshold_(fusion_threshold) {}

  struct Built {
    Plan plan;
    std::vector<KnownTensor*> evicted;  // no longer cached
  };

  /// Of all units, in order: first what fails, then what runs, then changes of groups (nothing of a
  /// group comes after its end), joins last, as they become ready only after everything that was
  /// submitted before them. The tensors still hold their submissions.
  Built build(const std::vector<ReadyUnit>& units);

  /// The number of the last plan built.
  [[nodiscard]] std::uint64_t last_number() const { return number_; }

 private:
  PlanItem item_of(const std::vector<KnownTensor*>& tensors);
  void add_failures(const std::vector<ReadyUnit>& units, Plan& plan);
  void add_operations(const std::vector<ReadyUnit>& units, Built& built);
  void add_group_changes(const std::vector<ReadyUnit>& units, Plan& plan);
  void add_joins(const std::vector<ReadyUnit>& units, Plan& plan);
  void place_in_cache(const std::vector<FusionPart>& parts, Built& built);

  CacheLedger& ledger_;
  std::uint64_t fusion_threshold_;
  std::uint64_t number_ = 0;
  std::unordered_map<GroupId, std::uint64_t> sequences_;  // the last of each group
};

}  // namespace fasthorovod::core
