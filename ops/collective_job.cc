#include "ops/collective_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "ops/algorithm_table.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

using core::OpKind;

std::uint64_t bytes_of(const core::PlanTensor& tensor, core::DataType type) {
  return core::element_count(tensor.shape) * core::size_of(type);
}

const std::byte* input_of(const Entry& entry) {
  return static_cast<const std::byte*>(entry.submission.input);
}
std::byte* output_of(const Entry& entry) {
  return static_cast<std::byte*>(entry.submission.output);
}

// Copies one reduced tensor out and scales it: an average is a sum that is divided by the number of
// ranks (copy_scaled divides exactly by 1.0 / n).
void copy_result(std::byte* to, const std::byte* from, std::size_t count,
                 const core::PlanItem& item, int ranks) {
  const bool average = item.reduction == core::Reduction::kAverage;
  const double factor = average ? item.postscale / ranks : item.postscale;
  if (to != from || factor != 1.0) copy_scaled(to, from, count, item.type, factor);
}

}  // namespace

CollectiveJob::CollectiveJob(core::PlanItem item, std::vector<EntryPtr> entries, GroupPtr group)
    : item_(std::move(item)), entries_(std::move(entries)), group_(std::move(group)) {}

std::string CollectiveJob::title() const {
  std::string text(core::to_string(item_.op));
  if (item_.tensors.empty()) return text;
  text += fmt::format(" of '{}'", item_.tensors.front().name);
  if (item_.tensors.size() > 1) text += fmt::format(" and {} more", item_.tensors.size() - 1);
  if (item_.group != core::kWorldGroup) text += fmt::format(" in process set {}", item_.group);
  return text;
}

core::Status CollectiveJob::prepare(BufferPool& pool, compression::ResidualStore& residuals,
                                    bool inside_hosts) {
  if (prepared_) return {};
  core::Status status = find_memory(pool, residuals, inside_hosts);
  prepared_ = static_cast<bool>(status);
  return status;
}

core::Status CollectiveJob::find_memory(BufferPool& pool, compression::ResidualStore& residuals,
                                        bool inside_hosts) {
  switch (item_.op) {
    case OpKind::kAllreduce:
      if (!item_.codec.encodes()) return prepare_allreduce(pool, inside_hosts);
      coded_ = std::make_unique<CodedJob>(item_, entries_, *group_, pool, residuals);
      return {};
    case OpKind::kBroadcast:
      return prepare_broadcast();
    case OpKind::kAllgather:
      return prepare_allgather();
    case OpKind::kBarrier:
    case OpKind::kJoin:
    case OpKind::kAddGroup:
    case OpKind::kRemoveGroup:
      return {};
  }
  return core::Error{core::ErrorCode::kInternal, "an operation of unknown kind was planned"};
}

core::Status CollectiveJob::prepare_allreduce(BufferPool& pool, bool inside_hosts) {
  std::uint64_t total = 0;
  for (const core::PlanTensor& tensor : item_.tensors) total += bytes_of(tensor, item_.type);
  const bool in_place = entries_.size() == 1 && entries_.front() != nullptr;
  if (in_place) {
    buffer_ = {output_of(*entries_.front()), total};
    input_ = {input_of(*entries_.front()), total};
    if (inside_hosts && item_.prescale == 1.0) return {};
    input_ = buffer_;
  } else {
    pooled_ = pool.acquire(total);
    buffer_ = pooled_.first(total);
  }
  std::byte* to = buffer_.data();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint64_t bytes = bytes_of(item_.tensors[i], item_.type);
    if (bytes == 0) continue;
    if (entries_[i] != nullptr) {
      copy_scaled(to, input_of(*entries_[i]), bytes / core::size_of(item_.type), item_.type,
                  item_.prescale);
    } else {
      std::memset(to, 0, bytes);
    }
    to += bytes;
  }
  return {};
}

void CollectiveJob::find_scratch(BufferPool& pool, std::size_t bytes) {
  if (bytes == 0 || !scratch_.empty()) return;
  pooled_scratch_ = pool.acquire(bytes);
  scratch_ = pooled_scratch_.first(bytes);
}

core::Status CollectiveJob::prepare_broadcast() {
  if (entries_.size() != 1 || entries_.front() == nullptr) {
    return core::Error{core::ErrorCode::kInternal,
                       fmt::format("{}: not submitted by this rank", title())};
  }
  const Entry& entry = *entries_.front();
  buffer_ = {output_of(entry), bytes_of(item_.tensors.front(), item_.type)};
  const bool is_root = group_->position_of(item_.root) == group_->position;
  const bool copies = is_root && input_of(entry) != nullptr && input_of(entry) != buffer_.data();
  if (copies && !buffer_.empty()) std::memcpy(buffer_.data(), input_of(entry), buffer_.size());
  return {};
}

core::Status CollectiveJob::prepare_allgather() {
  if (entries_.size() != 1 || entries_.front() == nullptr) {
    return core::Error{core::ErrorCode::kInternal,
                       fmt::format("{}: not submitted by this rank", title())};
  }
  Submission& submission = entries_.front()->submission;
  const core::PlanTensor& tensor = item_.tensors.front();
  std::vector<std::int64_t> shape = submission.request.shape;
  shape.front() = 1;
  const std::uint64_t row_elements = core::element_count(shape);
  for (const int member : group_->members) {
    const std::int64_t rows = tensor.first_dimensions[static_cast<std::size_t>(member)];
    block_elements_.push_back(static_cast<std::uint64_t>(rows) * row_elements);
  }
  shape.front() = std::accumulate(tensor.first_dimensions.begin(), tensor.first_dimensions.end(),
                                  std::int64_t{0});
  core::Result<void*> memory = submission.allocate_output(shape);
  if (!memory) return std::move(memory).error().with_context(title());

  const std::uint64_t element_bytes = core::size_of(item_.type);
  buffer_ = {static_cast<std::byte*>(*memory), core::element_count(shape) * element_bytes};
  const auto own = block_elements_.begin() + group_->position;
  const std::uint64_t before = std::accumulate(block_elements_.begin(), own, std::uint64_t{0});
  if (*own != 0)
    std::memcpy(buffer_.data() + before * element_bytes, submission.input, *own * element_bytes);
  return {};
}

Shape CollectiveJob::shape(int flows) const {
  Shape shape;
  shape.rank = group_->position;
  shape.size = group_->size();
  shape.element_bytes = core::size_of(item_.type);
  shape.elements = buffer_.size() / shape.element_bytes;
  shape.block_elements = block_elements_;
  shape.root = std::max(group_->position_of(item_.root), 0);
  shape.chunk_bytes = default_chunk_bytes(buffer_.size(), shape.size, flows);
  return shape;
}

void CollectiveJob::finish() {
  if (coded_) return coded_->finish();
  if (item_.op != OpKind::kAllreduce) return;
  const std::byte* from = buffer_.data();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint64_t bytes = bytes_of(item_.tensors[i], item_.type);
    if (entries_[i] != nullptr && bytes != 0) {
      copy_result(output_of(*entries_[i]), from, bytes / core::size_of(item_.type), item_,
                  group_->size());
    }
    from += bytes;
  }
}

void CollectiveJob::release(BufferPool& pool) {
  if (coded_) coded_->release(pool);
  pool.release(std::move(pooled_));
  pool.release(std::move(pooled_scratch_));
}

}  // namespace fasthorovod::ops
