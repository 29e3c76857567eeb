#include "ops/coded_job.h"

#include <algorithm>
#include <cstring>

#include "compression/codec_table.h"
#include "compression/residual.h"
#include "ops/algorithm_table.h"

namespace fasthorovod::ops {
namespace {

compression::CodecSetting setting_of(const core::PlanItem& item, int ranks) {
  const bool average = item.reduction == core::Reduction::kAverage;
  return {.threshold = item.codec.threshold,
          .ranks = ranks,
          .factor = average ? item.postscale / ranks : item.postscale};
}

std::uint64_t elements_of(const core::PlanItem& item) {
  std::uint64_t elements = 0;
  for (const core::PlanTensor& tensor : item.tensors) elements += core::element_count(tensor.shape);
  return elements;
}

// The wire part begins at a whole cache line.
std::uint64_t padded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

CodedJob::CodedJob(const core::PlanItem& item, const std::vector<EntryPtr>& entries,
                   const Group& group, BufferPool& pool, compression::ResidualStore& residuals)
    : item_(item),
      entries_(entries),
      group_(item.group),
      codec_(*compression::codec_info(item.codec.id).codec),
      residuals_(residuals) {
  const std::uint64_t elements = elements_of(item);
  const CodedLayout layout(codec_, elements, group.position, group.size());
  const std::uint64_t value_bytes = padded(elements * sizeof(float));
  pooled_ = pool.acquire(value_bytes + layout.buffer_bytes());
  const std::span<std::byte> memory = pooled_.first(value_bytes + layout.buffer_bytes());
  values_ = {reinterpret_cast<float*>(memory.data()), elements};
  wire_ = memory.subspan(value_bytes);
  const bool alone = entries_.size() == 1 && entries_.front() != nullptr;
  results_ = alone ? std::span(static_cast<float*>(entries_.front()->submission.output), elements)
                   : values_;
  flight_.emplace(codec_, setting_of(item, group.size()), layout, values_, wire_);
  load();
}

Schedule CodedJob::schedule(int flows) const {
  const CodedLayout& layout = flight_->layout();
  return coded_exchange(layout, default_chunk_bytes(wire_.size(), layout.ranks(), flows));
}

template <typename Visitor>
void CodedJob::for_each_tensor(Visitor visit) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::size_t elements = core::element_count(item_.tensors[i].shape);
    if (elements > 0) visit(i, values_.subspan(first, elements));
    first += elements;
  }
}

std::span<float> CodedJob::residual_of(std::size_t tensor, std::size_t elements) {
  if (!codec_.keeps_residual()) return {};
  return residuals_.of(group_, item_.tensors[tensor].name, elements);
}

// A rank that has joined takes part with zeros, and keeps nothing of them.
void CodedJob::load() {
  for_each_tensor([this](std::size_t i, std::span<float> values) {
    if (entries_[i] == nullptr) {
      std::ranges::fill(values, 0.0F);
      return;
    }
    const auto* input = static_cast<const float*>(entries_[i]->submission.input);
    compression::compensate({input, values.size()}, residual_of(i, values.size()),
                            static_cast<float>(item_.prescale), values);
  });
}

void CodedJob::encode(const std::function<void(std::uint32_t)>& open) {
  for (std::uint32_t segment = 0; segment < flight_->layout().segments(); ++segment) {
    flight_->encode(segment);
    open(segment + 1);
  }
  if (codec_.keeps_residual()) keep_residuals();
}

void CodedJob::keep_residuals() {
  for_each_tensor([this](std::size_t i, std::span<float> values) {
    if (entries_[i] != nullptr) compression::keep(values, residual_of(i, values.size()));
  });
}

std::uint32_t CodedJob::piece_over(std::uint32_t piece) {
  return flight_->piece_over(piece, results_);
}

void CodedJob::finish() {
  if (results_.data() != values_.data()) return;
  for_each_tensor([this](std::size_t i, std::span<float> values) {
    if (entries_[i] == nullptr) return;
    std::memcpy(entries_[i]->submission.output, values.data(), values.size_bytes());
  });
}

void CodedJob::release(BufferPool& pool) { pool.release(std::move(pooled_)); }

}  // namespace fasthorovod::ops
