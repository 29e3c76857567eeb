// One plan item on one rank, from the copy in to the copy out: the tensors it fuses, the buffer its
// schedule works on, and which memory that is.
//
// A single tensor is worked on in place, in the caller's output, to which its input is copied first
// unless the ranks of a host read it where it is; several are packed into a pooled
// buffer without gaps, in the plan's order, scaled while they are copied. Thread: owner (the
// worker), but for the lanes that fill the buffer between prepare() and finish().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compression/residual_store.h"
#include "core/plan.h"
#include "core/result.h"
#include "ops/buffer_pool.h"
#include "ops/coded_job.h"
#include "ops/entry.h"
#include "ops/group_table.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

class CollectiveJob final {
 public:
  /// `entries` has one place a tensor of the item; null where this rank did not submit it (it has
  /// joined) and takes part with zeros. This rank is in `group`, or the item moves nothing.
  CollectiveJob(core::PlanItem item, std::vector<EntryPtr> entries, GroupPtr group);

  /// Finds or makes the buffer and copies in; once. `inside_hosts`: as Routes says of an
  /// all-reduce. An error belongs to this rank alone (no memory for a result).
  core::Status prepare(BufferPool& pool, compression::ResidualStore& residuals, bool inside_hosts);

  /// After prepare(): finds the scratch of the algorithm; once. May throw std::bad_alloc.
  void find_scratch(BufferPool& pool, std::size_t bytes);
  [[nodiscard]] std::span<std::byte> scratch() const { return scratch_; }

  /// After prepare(): the part of an operation with a codec; null without one.
  [[nodiscard]] CodedJob* coded() const { return coded_.get(); }

  /// What the algorithm is given, over buffer(); `flows` is how many connections share a transfer.
  [[nodiscard]] Shape shape(int flows) const;

  /// Copies out. Only after the schedule ran to its end.
  void finish();

  /// Gives pooled memory back.
  void release(BufferPool& pool);

  [[nodiscard]] std::span<std::byte> buffer() const { return coded_ ? coded_->buffer() : buffer_; }
  /// What is reduced into the buffer.
  [[nodiscard]] std::span<const std::byte> input() const {
    return input_.empty() ? buffer() : input_;
  }
  /// Bytes of its tensors.
  [[nodiscard]] std::uint64_t payload_bytes() const {
    return coded_ ? coded_->payload_bytes() : buffer_.size();
  }
  [[nodiscard]] const core::PlanItem& item() const { return item_; }
  [[nodiscard]] const Group& group() const { return *group_; }
  [[nodiscard]] const std::vector<EntryPtr>& entries() const { return entries_; }
  /// For messages: "allreduce of 'conv1.weight' and 3 more".
  [[nodiscard]] std::string title() const;

 private:
  core::Status find_memory(BufferPool& pool, compression::ResidualStore& residuals,
                           bool inside_hosts);
  core::Status prepare_allreduce(BufferPool& pool, bool inside_hosts);
  core::Status prepare_broadcast();
  core::Status prepare_allgather();

  core::PlanItem item_;
  std::vector<EntryPtr> entries_;
  GroupPtr group_;
  bool prepared_ = false;
  std::span<std::byte> buffer_;
  std::span<const std::byte> input_;  // empty: the buffer
  BufferPool::Buffer pooled_;
  std::span<std::byte> scratch_;
  BufferPool::Buffer pooled_scratch_;
  std::vector<std::uint64_t> block_elements_;  // all-gather: each rank's part
  std::unique_ptr<CodedJob> coded_;
};

}  // namespace fasthorovod::ops
