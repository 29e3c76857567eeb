// All algorithms there are: one row each. Tests, benches and help texts walk this table, so a new
// row is tested and shown with no further edit. Immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/cost_model.h"
#include "core/request.h"
#include "ops/ordered.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

struct Algorithm {
  std::string_view name;  // as users write it, e.g. "ring-allreduce"
  OrderedKind kind = OrderedKind::kAllreduce;
  std::string_view purpose;  // one sentence
  bool (*supports)(const Shape&) = nullptr;
  Schedule (*build)(const Shape&) = nullptr;
  bool has_source = false;                                 // sends come from memory of their own
  std::uint64_t (*scratch_bytes)(const Shape&) = nullptr;  // that its sums need; null: none
};

std::span<const Algorithm> algorithm_table();

/// The row of that name, or null.
const Algorithm* find_algorithm(std::string_view name);

/// The algorithm all ranks use for this operation; depends on nothing that differs between them.
/// All-reduces are by the plan, which all ranks have alike.
const Algorithm& choose(OrderedKind kind, const Shape& shape, const core::AllreducePlan& plan);
/// The same for the named door. What moves nothing gets the barrier.
const Algorithm& choose(core::OpKind op, const Shape& shape, const core::AllreducePlan& plan);

/// Bytes of scratch that it needs.
std::uint64_t scratch_bytes(const Algorithm& algorithm, const Shape& shape);

/// Shape::chunk_bytes for an operation over `bytes` among `size` ranks when no two ranks share more
/// than `flows` flows: between 32 KiB and 253 KiB (a chunk stays in the L2 cache). Up to 64 KiB a
/// flow and segment that is one chunk, since on a fast network what a chunk costs in calls and
/// packets counts as much as its bytes. Above, four as long as they have 64 KiB or more: on a slow
/// network flows end together only if there are chunks to even them out.
std::uint64_t default_chunk_bytes(std::uint64_t bytes, int size, int flows);

/// The same for an all-reduce by that algorithm. Where a rank sends to several others at once, it
/// uses as many flows in all with fewer to each: so chunks are larger, between 64 KiB and 256 KiB.
std::uint64_t chunk_bytes(const Algorithm& algorithm, const Shape& shape, int flows);

}  // namespace fasthorovod::ops
