#include "ops/ordered_job.h"

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/algorithm_table.h"
#include "ops/ordered_check.h"
#include "ops/outcome.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

// In an all-to-all no number of bytes is known to all ranks, but both sides of a pair must cut
// alike.
constexpr std::uint64_t kAlltoallChunk = 128U << 10;

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!from.empty() && to.data() != from.data()) std::memmove(to.data(), from.data(), from.size());
}

}  // namespace

OrderedJob::OrderedJob(OrderedOperation operation, GroupPtr group, std::uint64_t sequence)
    : operation_(std::move(operation)), group_(std::move(group)), sequence_(sequence) {}

const Handle& OrderedJob::handle() {
  if (!handle_) handle_ = Handle::pending();
  return *handle_;
}

std::string OrderedJob::title() const {
  return operation_.title.empty() ? describe(operation_) : operation_.title;
}

void OrderedJob::prepare(BufferPool& pool, bool inside_hosts) {
  if (std::exchange(prepared_, true)) return;
  if (operation_.kind == OrderedKind::kAllreduce) return prepare_allreduce(inside_hosts);
  find_memory(pool);
}

void OrderedJob::prepare_allreduce(bool inside_hosts) {
  buffer_ = operation_.output;
  input_ = operation_.input;
  if (inside_hosts && operation_.prescale == 1.0) return;
  copy_scaled_input(buffer_);
  input_ = buffer_;
}

void OrderedJob::find_memory(BufferPool& pool) {
  buffer_ = operation_.output;
  switch (operation_.kind) {
    case OrderedKind::kReduce:
      if (!is_root()) buffer_ = pooled(pool, operation_.input.size());
      return copy_scaled_input(buffer_);
    case OrderedKind::kReduceScatter:
      buffer_ = pooled(pool, operation_.input.size());
      return copy_scaled_input(buffer_);
    case OrderedKind::kAllgather: {
      const ByteSpan own = block(operation_.blocks);
      return copy(buffer_.subspan(own.offset, own.bytes), operation_.input);
    }
    case OrderedKind::kGather:
    case OrderedKind::kScatter:
    case OrderedKind::kAlltoall:
      return prepare_exchange(pool);
    case OrderedKind::kAllreduce:
    case OrderedKind::kBroadcast:
    case OrderedKind::kBarrier:
      return;
  }
}

// All-reduces, which alone have one, use no other pooled memory.
void OrderedJob::find_scratch(BufferPool& pool, std::size_t bytes) {
  if (bytes > 0) scratch_ = pooled(pool, bytes);
}

// The own block never travels: it is copied here.
void OrderedJob::prepare_exchange(BufferPool& pool) {
  source_ = operation_.input;
  const bool in_place = !buffer_.empty() && source_->data() == buffer_.data();
  if (operation_.kind == OrderedKind::kAlltoall && in_place) {
    const std::span<std::byte> kept = pooled(pool, source_->size());
    copy(kept, *source_);
    source_ = kept;
  }
  const ByteSpan own = block(operation_.blocks);
  if (operation_.kind == OrderedKind::kAlltoall) {
    const ByteSpan place = block(operation_.received_blocks);
    copy(buffer_.subspan(place.offset, place.bytes), source_->subspan(own.offset, own.bytes));
  } else if (!is_root()) {
    if (operation_.kind == OrderedKind::kGather) buffer_ = {};
  } else if (operation_.kind == OrderedKind::kGather) {
    copy(buffer_.subspan(own.offset, own.bytes), *source_);
  } else {
    copy(buffer_, source_->subspan(own.offset, own.bytes));
  }
}

std::span<std::byte> OrderedJob::pooled(BufferPool& pool, std::size_t bytes) {
  if (bytes == 0) return {};
  pooled_ = pool.acquire(bytes);
  return pooled_.first(bytes);
}

void OrderedJob::copy_scaled_input(std::span<std::byte> to) const {
  if (to.empty() || (to.data() == operation_.input.data() && operation_.prescale == 1.0)) return;
  copy_scaled(to.data(), operation_.input.data(), to.size() / core::size_of(operation_.type),
              operation_.type, operation_.prescale);
}

ByteSpan OrderedJob::block(const std::vector<std::uint64_t>& blocks) const {
  const auto own = blocks.begin() + group_->position;
  const std::uint64_t before = std::accumulate(blocks.begin(), own, std::uint64_t{0});
  const std::uint64_t element = core::size_of(operation_.type);
  return {before * element, *own * element};
}

Shape OrderedJob::shape(int flows) const {
  Shape shape;
  shape.rank = group_->position;
  shape.size = group_->size();
  shape.element_bytes = core::size_of(operation_.type);
  shape.elements = buffer_.size() / shape.element_bytes;
  shape.block_elements = operation_.blocks;
  shape.received_elements = operation_.received_blocks;
  shape.root = operation_.root;
  const std::uint64_t whole =
      operation_.blocks.empty()
          ? buffer_.size()
          : shape.element_bytes * std::accumulate(operation_.blocks.begin(),
                                                  operation_.blocks.end(), std::uint64_t{0});
  shape.chunk_bytes = operation_.kind == OrderedKind::kAlltoall
                          ? kAlltoallChunk
                          : default_chunk_bytes(whole, shape.size, flows);
  return shape;
}

Operation OrderedJob::transfer(std::uint32_t epoch) const {
  Operation operation;
  operation.epoch = epoch;
  operation.group = wire_group(group_->id, Door::kOrdered);
  operation.sequence = sequence_;
  operation.fingerprint = fingerprint(operation_, sequence_);
  operation.title = title();
  operation.description = describe(operation_);
  operation.members = group_->members;
  operation.buffer = buffer_;
  operation.source = source_;
  operation.scratch = scratch_;
  operation.type = operation_.type;
  operation.reduction = operation_.reduction;
  return operation;
}

void OrderedJob::finish() {
  switch (operation_.kind) {
    case OrderedKind::kAllreduce:
      return average(operation_.output, buffer_);
    case OrderedKind::kReduce:
      if (is_root()) average(operation_.output, buffer_);
      return;
    case OrderedKind::kReduceScatter: {
      const ByteSpan own = block(operation_.blocks);
      return average(operation_.output, buffer_.subspan(own.offset, own.bytes));
    }
    default:
      return;
  }
}

// Copies; an average is a sum that is divided by the number of ranks.
void OrderedJob::average(std::span<std::byte> to, std::span<const std::byte> from) const {
  if (operation_.reduction != core::Reduction::kAverage) return copy(to, from);
  const std::size_t count = to.size() / core::size_of(operation_.type);
  if (count == 0) return;
  copy_scaled(to.data(), from.data(), count, operation_.type, 1.0 / group_->size());
}

core::Status OrderedJob::outcome(const core::Status& status) const {
  return status ? status : outcome_of(title(), status);
}

void OrderedJob::complete(const core::Status& status, BufferPool& pool) {
  pool.release(std::exchange(pooled_, {}));
  operation_.keep_alive.reset();
  if (handle_) handle_->complete(outcome(status));
}

}  // namespace fasthorovod::ops
