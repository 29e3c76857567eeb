#include "core/plan_builder.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::core {

namespace {

bool is_cacheable(const Request& request) { return request.op != OpKind::kBarrier; }

// Runs with data, or as a barrier.
bool is_collective(const ReadyUnit& unit) {
  return !unit.error && !unit.is_join() && !unit.changes_group();
}

PlanTensor spelled_out(const KnownTensor& tensor) {
  PlanTensor result{tensor.name(), tensor.lowest_request()->shape, tensor.first_dimensions(), {}};
  if (!result.first_dimensions.empty() && !result.shape.empty()) {
    result.shape.front() = result.first_dimensions[static_cast<std::size_t>(tensor.lowest_rank())];
  }
  return result;
}

FusionUnit fusion_unit(const Request& request) {
  return {fusion_key(request), byte_count(request), request.op == OpKind::kAllreduce};
}

}  // namespace

std::vector<FusionPart> cut_into_parts(const ReadyUnit& ready) {
  std::vector<FusionPart> parts;
  if (!is_collective(ready)) return parts;
  for (KnownTensor* tensor : ready.tensors) {
    const FusionUnit unit = fusion_unit(*tensor->lowest_request());
    auto same = parts.end();
    if (unit.fusable) {
      same = std::find_if(parts.begin(), parts.end(), [&](const FusionPart& part) {
        return part.unit.fusable && part.unit.key == unit.key;
      });
    }
    if (same == parts.end()) {
      parts.push_back({{tensor}, unit});
    } else {
      same->tensors.push_back(tensor);
      same->unit.bytes += unit.bytes;
    }
  }
  return parts;
}

PlanItem PlanBuilder::item_of(const std::vector<KnownTensor*>& tensors) {
  const Request& request = *tensors.front()->lowest_request();
  PlanItem item;
  item.group = request.group;
  item.sequence = ++sequences_[item.group];
  item.op = request.op;
  item.type = request.type;
  item.reduction = request.reduction;
  item.root = request.root;
  item.prescale = request.prescale;
  item.postscale = request.postscale;
  item.codec = request.codec;
  return item;
}

void PlanBuilder::add_failures(const std::vector<ReadyUnit>& units, Plan& plan) {
  for (const ReadyUnit& unit : units) {
    if (!unit.error || unit.is_join()) continue;
    PlanItem item = item_of(unit.tensors);
    item.error = unit.error;
    for (const KnownTensor* tensor : unit.tensors) item.tensors.push_back(spelled_out(*tensor));
    plan.items.push_back(std::move(item));
  }
}

// In two rounds: what the plan uses is marked first, so that no tensor stored in the second round
// pushes out one that a later item of the same plan refers to.
void PlanBuilder::place_in_cache(const std::vector<FusionPart>& parts, Built& built) {
  std::vector<KnownTensor*> fresh;
  for (const FusionPart& part : parts) {
    for (KnownTensor* tensor : part.tensors) {
      const bool is_used = ledger_.use(*tensor, number_);
      if (!is_used && is_cacheable(*tensor->lowest_request())) fresh.push_back(tensor);
    }
  }
  for (KnownTensor* tensor : fresh) {
    KnownTensor* evicted = ledger_.store(*tensor, number_, built.plan.cache_changes);
    if (evicted != nullptr) built.evicted.push_back(evicted);
  }
}

void PlanBuilder::add_operations(const std::vector<ReadyUnit>& units, Built& built) {
  std::vector<FusionPart> parts;
  std::vector<FusionUnit> fusion_units;
  for (const ReadyUnit& unit : units) {
    for (FusionPart& part : cut_into_parts(unit)) {
      fusion_units.push_back(part.unit);
      parts.push_back(std::move(part));
    }
  }
  place_in_cache(parts, built);
  for (const std::vector<std::size_t>& operation : plan_fusion(fusion_units, fusion_threshold_)) {
    PlanItem item = item_of(parts[operation.front()].tensors);
    for (const std::size_t index : operation) {
      for (const KnownTensor* tensor : parts[index].tensors) {
        const auto position = ledger_.position_in(*tensor, number_);
        item.tensors.push_back(position ? PlanTensor{{}, {}, {}, position} : spelled_out(*tensor));
      }
    }
    built.plan.items.push_back(std::move(item));
  }
}

void PlanBuilder::add_group_changes(const std::vector<ReadyUnit>& units, Plan& plan) {
  for (const ReadyUnit& unit : units) {
    if (!unit.changes_group()) continue;
    PlanItem item = item_of(unit.tensors);
    item.group = unit.changed;
    item.members = unit.tensors.front()->lowest_request()->members;
    item.tensors = {spelled_out(*unit.tensors.front())};
    if (item.op == OpKind::kRemoveGroup) sequences_.erase(unit.changed);
    plan.items.push_back(std::move(item));
  }
}

void PlanBuilder::add_joins(const std::vector<ReadyUnit>& units, Plan& plan) {
  for (const ReadyUnit& unit : units) {
    if (!unit.is_join()) continue;
    PlanItem item;
    item.sequence = ++sequences_[kWorldGroup];
    item.op = OpKind::kJoin;
    item.error = unit.error;
    item.last_joined = unit.last_joined;
    plan.items.push_back(std::move(item));
  }
}

PlanBuilder::Built PlanBuilder::build(const std::vector<ReadyUnit>& units) {
  Built built;
  built.plan.number = ++number_;
  add_failures(units, built.plan);
  add_operations(units, built);
  add_group_changes(units, built.plan);
  add_joins(units, built.plan);
  return built;
}

}  // namespace fasthorovod::core
