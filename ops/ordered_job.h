// One operation of the ordered door on one rank, from submit to completion: the memory its schedule
// works on, the copies before and after it.
//
// Reductions work in the caller's output where it holds the whole, in a pooled buffer elsewhere;
// the caller's input is never written. An all-reduce inside hosts reads the input where it is,
// unless it is to be scaled first; others begin with a copy of it in the buffer. Thread: owner (the
// worker, or who has its turn), but for the lanes that work on the memory between prepare() and
// finish().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ops/buffer_pool.h"
#include "ops/deadline_queue.h"
#include "ops/group_table.h"
#include "ops/handle.h"
#include "ops/operation.h"
#include "ops/ordered.h"

namespace fasthorovod::ops {

class OrderedJob final {
 public:
  /// `operation` is complete (see ordered_check.h).
  OrderedJob(OrderedOperation operation, GroupPtr group, std::uint64_t sequence);

  /// Finds or makes the memory and copies in; once. `inside_hosts`: as Routes says of it. May throw
  /// std::bad_alloc.
  void prepare(BufferPool& pool, bool inside_hosts);

  /// After prepare(): finds the scratch of the algorithm; once. May throw std::bad_alloc.
  void find_scratch(BufferPool& pool, std::size_t bytes);

  /// After prepare(): what an all-reduce reduces into its buffer.
  [[nodiscard]] std::span<const std::byte> input() const { return input_; }

  /// What runs, but for its schedule and `done`.
  [[nodiscard]] Operation transfer(std::uint32_t epoch) const;
  /// What the algorithm is given; `flows` is how many connections share a transfer.
  [[nodiscard]] Shape shape(int flows) const;

  /// Copies out. Only after the schedule ran to its end.
  void finish();

  /// Gives pooled memory back, lets go of the caller's memory and completes the handle, if it was
  /// made.
  void complete(const core::Status& status, BufferPool& pool);

  /// What its caller hears of an end with that status.
  [[nodiscard]] core::Status outcome(const core::Status& status) const;

  [[nodiscard]] const OrderedOperation& operation() const { return operation_; }
  [[nodiscard]] const Group& group() const { return *group_; }
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// Made at the first call, before another thread has the job.
  [[nodiscard]] const Handle& handle();
  [[nodiscard]] std::string title() const;

  std::optional<core::TimePoint> limit;          // when its time limit passes
  std::optional<DeadlineQueue::Token> deadline;  // set while something is due
  bool over = false;                             // the outcome is settled

 private:
  [[nodiscard]] bool is_root() const { return operation_.root == group_->position; }
  [[nodiscard]] std::span<std::byte> pooled(BufferPool& pool, std::size_t bytes);
  void copy_scaled_input(std::span<std::byte> to) const;
  void average(std::span<std::byte> to, std::span<const std::byte> from) const;
  void find_memory(BufferPool& pool);
  void prepare_allreduce(bool inside_hosts);
  [[nodiscard]] ByteSpan block(const std::vector<std::uint64_t>& blocks) const;
  void prepare_exchange(BufferPool& pool);

  OrderedOperation operation_;
  const GroupPtr group_;
  const std::uint64_t sequence_;
  std::optional<Handle> handle_;

  bool prepared_ = false;
  std::span<std::byte> buffer_;
  std::span<const std::byte> input_;
  std::optional<std::span<const std::byte>> source_;
  std::span<std::byte> scratch_;
  BufferPool::Buffer pooled_;
};

}  // namespace fasthorovod::ops
