#include "test/ops/collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {
namespace {

std::vector<std::uint64_t> block_elements_of(const CollectiveSpec& spec) {
  const auto size = static_cast<std::uint64_t>(spec.network.size);
  std::vector<std::uint64_t> blocks(size, 0);
  for (std::uint64_t i = 0; i < spec.elements; ++i) {
    if (spec.blocks == 0) ++blocks[i % size];
    if (spec.blocks == 1) ++blocks[(i * i) % size];
    if (spec.blocks == 2) ++blocks[size / 2];
  }
  return blocks;
}

void copy_span(Bytes& to, const Bytes& from, ByteSpan span) {
  const auto begin = static_cast<std::ptrdiff_t>(span.offset);
  const auto end = begin + static_cast<std::ptrdiff_t>(span.bytes);
  std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
}

Bytes gathered(const CollectiveSpec& spec, const std::vector<Bytes>& inputs) {
  Bytes result = inputs[0];
  for (int rank = 0; rank < spec.network.size; ++rank) {
    copy_span(result, inputs[static_cast<std::size_t>(rank)],
              block_part(shape_of(spec, rank), rank));
  }
  return result;
}

// What a rank's source and buffer hold when they are apart: the blocks it sends, or none; room for
// those it gets.
std::uint64_t buffer_elements(const CollectiveSpec& spec, int rank) {
  const Shape shape = shape_of(spec, rank);
  const auto own = shape.block_elements[static_cast<std::size_t>(rank)];
  switch (spec.algorithm->kind) {
    case OrderedKind::kGather:
      return rank == spec.root ? spec.elements : 0;
    case OrderedKind::kScatter:
      return rank == spec.root ? 0 : own;
    case OrderedKind::kAlltoall:
      return std::accumulate(shape.received_elements.begin(), shape.received_elements.end(),
                             std::uint64_t{0});
    default:
      return spec.elements;
  }
}

void put(Bytes& to, ByteSpan place, const Bytes& from, ByteSpan span) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(span.offset);
  std::copy(begin, begin + static_cast<std::ptrdiff_t>(span.bytes),
            to.begin() + static_cast<std::ptrdiff_t>(place.offset));
}

Bytes exchanged(const CollectiveSpec& spec, const std::vector<Bytes>& inputs, int rank) {
  const Shape shape = shape_of(spec, rank);
  Bytes result(buffer_elements(spec, rank) * shape.element_bytes);
  for (int from = 0; from < shape.size; ++from) {
    const Bytes& input = inputs[static_cast<std::size_t>(from)];
    if (from == rank) continue;  // the own block is the caller's to copy
    if (spec.algorithm->kind == OrderedKind::kAlltoall) {
      put(result, received_part(shape, from), input, block_part(shape_of(spec, from), rank));
    } else if (spec.algorithm->kind == OrderedKind::kGather && rank == spec.root) {
      put(result, block_part(shape, from), input, {0, block_part(shape, from).bytes});
    } else if (spec.algorithm->kind == OrderedKind::kScatter && from == spec.root) {
      put(result, {0, 0}, input, block_part(shape, rank));
    }
  }
  return result;
}

// A rank's own block, or the whole on the root: what is defined after the reduction.
Bytes defined_part(const CollectiveSpec& spec, const Bytes& buffer, int rank) {
  const Shape shape = shape_of(spec, rank);
  ByteSpan part{0, buffer.size()};
  if (spec.algorithm->kind == OrderedKind::kReduceScatter) part = block_part(shape, rank);
  if (spec.algorithm->kind == OrderedKind::kReduce && rank != spec.root) part = {};
  const auto begin = buffer.begin() + static_cast<std::ptrdiff_t>(part.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(part.bytes)};
}

std::uint64_t children_in_tree(int place, int size) {
  std::uint64_t children = 0;
  for (int distance = 1; place + distance < size && (place & distance) == 0; distance *= 2) {
    ++children;
  }
  return children;
}

}  // namespace

Shape shape_of(const CollectiveSpec& spec, int rank) {
  const std::vector<std::uint64_t> blocks = block_elements_of(spec);
  // All ranks send alike, so what comes from each is the block with this rank's number.
  const std::vector<std::uint64_t> received(blocks.size(), blocks[static_cast<std::size_t>(rank)]);
  return {.rank = rank,
          .size = spec.network.size,
          .element_bytes = core::size_of(spec.type),
          .elements = spec.elements,
          .block_elements = blocks,
          .root = spec.root,
          .chunk_bytes = spec.chunk_bytes,
          .received_elements = received};
}

std::vector<Bytes> inputs_of(const CollectiveSpec& spec) {
  std::mt19937_64 random(spec.data_seed);
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < spec.network.size; ++rank) {
    inputs.push_back(spec.any_bits ? any_values(spec.type, spec.elements, random)
                                   : small_values(spec.type, spec.elements, random));
  }
  return inputs;
}

std::vector<Bytes> expected_of(const CollectiveSpec& spec, const std::vector<Bytes>& inputs) {
  std::vector<Bytes> expected;
  switch (spec.algorithm->kind) {
    case OrderedKind::kAllreduce:
    case OrderedKind::kReduceScatter:
    case OrderedKind::kReduce:
      return defined_of(
          spec, {inputs.size(), reference_reduce_in_turn(inputs, spec.type, spec.reduction)});
    case OrderedKind::kGather:
    case OrderedKind::kScatter:
    case OrderedKind::kAlltoall:
      for (int rank = 0; rank < spec.network.size; ++rank) {
        expected.push_back(exchanged(spec, inputs, rank));
      }
      return expected;
    case OrderedKind::kAllgather:
      return {inputs.size(), gathered(spec, inputs)};
    case OrderedKind::kBroadcast:
      return {inputs.size(), inputs[static_cast<std::size_t>(spec.root)]};
    case OrderedKind::kBarrier:
      break;
  }
  return inputs;
}

std::uint64_t bytes_by_formula(const CollectiveSpec& spec, int rank) {
  const Shape shape = shape_of(spec, rank);
  const std::uint64_t total = shape.bytes();
  if (shape.size == 1) return 0;
  if (spec.algorithm->name == "ring-allreduce") {
    return 2 * total - even_part(shape, shape.neighbour(1)).bytes -
           even_part(shape, shape.neighbour(2)).bytes;
  }
  if (spec.algorithm->name == "two-hop-allreduce") {
    const std::uint64_t own = even_part(shape, rank).bytes;
    return total - own + (static_cast<std::uint64_t>(shape.size) - 1) * own;
  }
  if (spec.algorithm->name == "one-hop-allreduce") {
    return total * (static_cast<std::uint64_t>(shape.size) - 1);
  }
  if (spec.algorithm->name == "ring-allgather") {
    return total - block_part(shape, shape.neighbour(1)).bytes;
  }
  const std::uint64_t own = block_part(shape, rank).bytes;
  if (spec.algorithm->name == "direct-allgather") {
    return own * (static_cast<std::uint64_t>(shape.size) - 1);
  }
  if (spec.algorithm->name == "ring-reduce-scatter") return total - own;
  if (spec.algorithm->name == "pairwise-alltoall") return total - own;
  if (spec.algorithm->name == "chain-reduce") return rank == spec.root ? 0 : total;
  if (spec.algorithm->name == "direct-gather") return rank == spec.root ? 0 : own;
  if (spec.algorithm->name == "direct-scatter") return rank == spec.root ? total - own : 0;
  const int place = shape.neighbour(-spec.root);
  if (spec.algorithm->name == "chain-broadcast") return place + 1 < shape.size ? total : 0;
  if (spec.algorithm->name == "binomial-broadcast") {
    return total * children_in_tree(place, shape.size);
  }
  EXPECT_EQ(spec.algorithm->kind, OrderedKind::kBarrier) << "a formula is missing";
  return 0;
}

std::vector<Bytes> buffers_of(const CollectiveSpec& spec) {
  std::vector<Bytes> buffers = inputs_of(spec);
  if (!spec.algorithm->has_source) return buffers;
  for (int rank = 0; rank < spec.network.size; ++rank) {
    buffers[static_cast<std::size_t>(rank)].assign(
        buffer_elements(spec, rank) * core::size_of(spec.type), std::byte{0});
  }
  return buffers;
}

std::vector<Bytes> defined_of(const CollectiveSpec& spec, const std::vector<Bytes>& buffers) {
  std::vector<Bytes> defined;
  for (int rank = 0; rank < spec.network.size; ++rank) {
    defined.push_back(defined_part(spec, buffers[static_cast<std::size_t>(rank)], rank));
  }
  return defined;
}

namespace {

// A callback that is never called, without pieces, keeps it as long as the operation lives.
void lend_scratch(const CollectiveSpec& spec, int rank, Operation& operation) {
  if (spec.algorithm->scratch_bytes == nullptr) return;
  const auto scratch = std::make_shared<Bytes>(spec.algorithm->scratch_bytes(shape_of(spec, rank)));
  operation.scratch = *scratch;
  operation.piece_done = [scratch](std::uint32_t) {};
}

}  // namespace

Operation operation_of(const CollectiveSpec& spec, int rank, Bytes& buffer, std::uint64_t sequence,
                       const Bytes* source) {
  Operation operation;
  operation.epoch = 3;
  operation.group = wire_group(5, spec.door);
  operation.sequence = sequence;
  operation.fingerprint = 0xF00D0000U + static_cast<std::uint32_t>(sequence);
  operation.title = "operation " + std::to_string(sequence);
  operation.description = operation.title;
  operation.schedule = spec.algorithm->build(shape_of(spec, rank));
  operation.early = spec.early && may_go_early(operation.schedule);
  operation.members.resize(static_cast<std::size_t>(spec.network.size));
  std::iota(operation.members.begin(), operation.members.end(), 0);
  operation.buffer = buffer;
  if (spec.algorithm->has_source) operation.source = *source;
  operation.type = spec.type;
  operation.reduction = spec.reduction;
  lend_scratch(spec, rank, operation);
  return operation;
}

std::vector<Bytes> run_collective(const CollectiveSpec& spec) {
  const std::vector<Bytes> sources = inputs_of(spec);
  std::vector<Bytes> buffers = buffers_of(spec);
  BoardNetwork network(spec.network);
  for (int rank = 0; rank < spec.network.size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    network.submit(rank, operation_of(spec, rank, buffers[at], 1, &sources[at]));
  }
  network.run();
  EXPECT_TRUE(network.faults().empty());
  for (int rank = 0; rank < spec.network.size; ++rank) {
    EXPECT_EQ(network.outcomes(rank).size(), 1U) << "rank " << rank << " did not complete";
    EXPECT_EQ(network.bytes_sent(rank), bytes_by_formula(spec, rank)) << "rank " << rank;
    for (const core::Status& status : network.outcomes(rank)) EXPECT_TRUE(status);
  }
  return defined_of(spec, buffers);
}

void check_collective(const CollectiveSpec& spec) {
  const std::vector<Bytes> expected = expected_of(spec, inputs_of(spec));
  ASSERT_EQ(run_collective(spec), expected)
      << spec.algorithm->name << " of " << spec.elements << ' ' << core::to_string(spec.type)
      << ", chunks of " << spec.chunk_bytes << ", seed " << spec.network.seed;
}

}  // namespace fasthorovod::ops
