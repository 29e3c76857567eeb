// One all-reduce with a codec on one rank: its values with their residuals, the buffer that
// travels, and where results go. What a CollectiveJob is for operations whose values travel as they
// are.
//
// The tensors are packed without gaps, in the plan's order, scaled and compensated while they are
// copied; a single one is decoded straight into the caller's output. Thread: owner (the worker).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compression/residual_store.h"
#include "core/plan.h"
#include "ops/buffer_pool.h"
#include "ops/coded_flight.h"
#include "ops/entry.h"
#include "ops/group_table.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

class CodedJob final {
 public:
  /// `entries` as a CollectiveJob takes them; all of these outlive this.
  CodedJob(const core::PlanItem& item, const std::vector<EntryPtr>& entries, const Group& group,
           BufferPool& pool, compression::ResidualStore& residuals);

  /// What the lanes move, and how.
  [[nodiscard]] std::span<std::byte> buffer() const { return wire_; }
  [[nodiscard]] Schedule schedule(int flows) const;
  /// Bytes of the tensors themselves.
  [[nodiscard]] std::uint64_t payload_bytes() const { return values_.size_bytes(); }

  /// Encodes all segments, and keeps what was lost. Calls open(count) when so many gates are open.
  void encode(const std::function<void(std::uint32_t count)>& open);

  /// A piece of the schedule is over. How many gates are open now.
  [[nodiscard]] std::uint32_t piece_over(std::uint32_t piece);

  /// Copies out, where that is left to do. Only after the schedule ran to its end.
  void finish();

  /// Gives the memory back.
  void release(BufferPool& pool);

 private:
  void load();
  void keep_residuals();
  // Calls visit(index of the tensor, its values) for each tensor.
  template <typename Visitor>
  void for_each_tensor(Visitor visit);
  [[nodiscard]] std::span<float> residual_of(std::size_t tensor, std::size_t elements);

  const core::PlanItem& item_;
  const std::vector<EntryPtr>& entries_;
  const core::GroupId group_;
  const compression::Codec& codec_;
  compression::ResidualStore& residuals_;
  BufferPool::Buffer pooled_;
  std::span<float> values_;
  std::span<float> results_;
  std::span<std::byte> wire_;
  std::optional<CodedFlight> flight_;
};

}  // namespace fasthorovod::ops
