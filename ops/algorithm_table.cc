#include "ops/algorithm_table.h"

#include <algorithm>
#include <array>

#include "ops/algorithms/binomial_broadcast.h"
#include "ops/algorithms/chain_broadcast.h"
#include "ops/algorithms/chain_reduce.h"
#include "ops/algorithms/direct_allgather.h"
#include "ops/algorithms/direct_gather.h"
#include "ops/algorithms/direct_scatter.h"
#include "ops/algorithms/dissemination_barrier.h"
#include "ops/algorithms/one_hop_allreduce.h"
#include "ops/algorithms/pairwise_alltoall.h"
#include "ops/algorithms/ring_allgather.h"
#include "ops/algorithms/ring_allreduce.h"
#include "ops/algorithms/ring_reduce_scatter.h"
#include "ops/algorithms/two_hop_allreduce.h"

namespace fasthorovod::ops {
namespace {

using core::OpKind;

// Above it the pipeline of the chain wins over the few steps of the tree.
constexpr std::uint64_t kBinomialBroadcastBytes = 64U << 10;
// What a rank sends at most where each sends to each, and what one of two ranks does.
constexpr std::uint64_t kDirectBytes = 64U << 10;
constexpr std::uint64_t kDirectBytesOfTwo = 256U << 10;
constexpr int kDirectRanks = 8;
constexpr std::uint64_t kSmallestChunk = 32U << 10;
constexpr std::uint64_t kMiddleChunk = 64U << 10;
// What the kernel hands on as one packet is 64 KiB with all headers, so four times that and a few
// bytes would be five packets.
constexpr std::uint64_t kLargestChunk = 253U << 10;
constexpr std::uint64_t kChunksAFlow = 4;

bool any_shape(const Shape& /*shape*/) { return true; }

bool has_a_block_a_rank(const Shape& shape) {
  return shape.block_elements.size() == static_cast<std::size_t>(shape.size);
}

bool has_blocks_both_ways(const Shape& shape) {
  return has_a_block_a_rank(shape) &&
         shape.received_elements.size() == static_cast<std::size_t>(shape.size);
}

bool has_root(const Shape& shape) { return shape.root >= 0 && shape.root < shape.size; }

bool has_a_block_and_a_root(const Shape& shape) {
  return has_a_block_a_rank(shape) && has_root(shape);
}

constexpr std::array kTable = {
    Algorithm{"ring-allreduce", OrderedKind::kAllreduce,
              "Sums along a ring and passes the result round once more; moves the fewest bytes.",
              any_shape, ring_allreduce},
    Algorithm{"two-hop-allreduce", OrderedKind::kAllreduce,
              "Sends shares straight to their owners, which add up and answer all.", any_shape,
              two_hop_allreduce, false, two_hop_scratch},
    Algorithm{"one-hop-allreduce", OrderedKind::kAllreduce,
              "Sends everything to all ranks, and each adds up; for small buffers.", any_shape,
              one_hop_allreduce, false, one_hop_scratch},
    Algorithm{"ring-allgather", OrderedKind::kAllgather,
              "Passes every rank's block once round a ring; blocks may differ in size.",
              has_a_block_a_rank, ring_allgather},
    Algorithm{"direct-allgather", OrderedKind::kAllgather,
              "Sends every block straight to all ranks; for small blocks.", has_a_block_a_rank,
              direct_allgather},
    Algorithm{"chain-broadcast", OrderedKind::kBroadcast,
              "Passes chunks along a chain of ranks that starts at the root; for large buffers.",
              has_root, chain_broadcast},
    Algorithm{"binomial-broadcast", OrderedKind::kBroadcast,
              "Doubles the number of ranks that have the buffer in every step; for small buffers.",
              has_root, binomial_broadcast},
    Algorithm{"dissemination-barrier", OrderedKind::kBarrier,
              "Spreads the news that a rank has come to twice as many ranks in every step.",
              any_shape, dissemination_barrier},
    Algorithm{"ring-reduce-scatter", OrderedKind::kReduceScatter,
              "Sums along a ring so that every rank's block ends at its rank.", has_a_block_a_rank,
              ring_reduce_scatter},
    Algorithm{"chain-reduce", OrderedKind::kReduce,
              "Sums chunks along a chain of ranks that ends at the root.", has_root, chain_reduce},
    Algorithm{"direct-gather", OrderedKind::kGather, "Sends every block straight to the root.",
              has_a_block_and_a_root, direct_gather, true},
    Algorithm{"direct-scatter", OrderedKind::kScatter,
              "Sends every rank its block straight from the root.", has_a_block_and_a_root,
              direct_scatter, true},
    Algorithm{"pairwise-alltoall", OrderedKind::kAlltoall,
              "Exchanges blocks with a rank further round the ring in every step.",
              has_blocks_both_ways, pairwise_alltoall, true},
};

// The largest block that all ranks send to all others: with two ranks that costs no more bytes than
// a ring. Many ranks would need many connections.
std::uint64_t direct_bytes(int size) {
  if (size <= 2) return kDirectBytesOfTwo;
  return size <= kDirectRanks ? kDirectBytes / static_cast<std::uint64_t>(size - 1) : 0;
}

std::uint64_t largest_block(const Shape& shape) {
  const auto largest = std::ranges::max_element(shape.block_elements);
  return largest == shape.block_elements.end() ? 0 : *largest * shape.element_bytes;
}

std::string_view name_for(OrderedKind kind, const Shape& shape, const core::AllreducePlan& plan) {
  switch (kind) {
    case OrderedKind::kAllreduce:
      return core::to_string(plan.choose(shape.bytes(), shape.size));
    case OrderedKind::kAllgather:
      return largest_block(shape) <= direct_bytes(shape.size) ? "direct-allgather"
                                                              : "ring-allgather";
    case OrderedKind::kBroadcast:
      return shape.bytes() <= kBinomialBroadcastBytes ? "binomial-broadcast" : "chain-broadcast";
    case OrderedKind::kReduceScatter:
      return "ring-reduce-scatter";
    case OrderedKind::kReduce:
      return "chain-reduce";
    case OrderedKind::kGather:
      return "direct-gather";
    case OrderedKind::kScatter:
      return "direct-scatter";
    case OrderedKind::kAlltoall:
      return "pairwise-alltoall";
    case OrderedKind::kBarrier:
      break;
  }
  return "dissemination-barrier";
}

OrderedKind kind_of(OpKind op) {
  switch (op) {
    case OpKind::kAllreduce:
      return OrderedKind::kAllreduce;
    case OpKind::kAllgather:
      return OrderedKind::kAllgather;
    case OpKind::kBroadcast:
      return OrderedKind::kBroadcast;
    case OpKind::kBarrier:
    case OpKind::kJoin:
    case OpKind::kAddGroup:
    case OpKind::kRemoveGroup:
      break;
  }
  return OrderedKind::kBarrier;
}

}  // namespace

std::span<const Algorithm> algorithm_table() { return kTable; }

const Algorithm* find_algorithm(std::string_view name) {
  const auto* row = std::ranges::find(kTable, name, &Algorithm::name);
  return row == kTable.end() ? nullptr : row;
}

const Algorithm& choose(OrderedKind kind, const Shape& shape, const core::AllreducePlan& plan) {
  return *find_algorithm(name_for(kind, shape, plan));
}

const Algorithm& choose(OpKind op, const Shape& shape, const core::AllreducePlan& plan) {
  return choose(kind_of(op), shape, plan);
}

std::uint64_t scratch_bytes(const Algorithm& algorithm, const Shape& shape) {
  return algorithm.scratch_bytes == nullptr ? 0 : algorithm.scratch_bytes(shape);
}

std::uint64_t chunk_bytes(const Algorithm& algorithm, const Shape& shape, int flows) {
  if (algorithm.scratch_bytes == nullptr || shape.size <= 2) {
    return default_chunk_bytes(shape.bytes(), shape.size, flows);
  }
  Shape first = shape;  // whose part is the largest: all cut alike
  first.rank = 0;
  const int peers = shape.size - 1;
  const auto flows_a_peer = static_cast<std::uint64_t>((flows + peers - 1) / peers);
  const std::uint64_t part = algorithm.scratch_bytes(first) / static_cast<std::uint64_t>(peers);
  return std::clamp(part / flows_a_peer, kMiddleChunk, kLargestChunk);
}

std::uint64_t default_chunk_bytes(std::uint64_t bytes, int size, int flows) {
  const auto parts = static_cast<std::uint64_t>(std::max(size, 1)) *
                     static_cast<std::uint64_t>(std::max(flows, 1));
  const std::uint64_t share = bytes / parts;
  if (share <= kMiddleChunk) return std::max(share, kSmallestChunk);
  return std::clamp(share / kChunksAFlow, kMiddleChunk, kLargestChunk);
}

}  // namespace fasthorovod::ops
