#include "core/known_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/agreement.h"

namespace fasthorovod::core {

namespace {

bool has_rows(const Request& request) {
  return request.op == OpKind::kAllgather && !request.shape.empty();
}

}  // namespace

KnownTensor::KnownTensor(const KnownGroup& group, std::string name, int size)
    : group_(group),
      name_(std::move(name)),
      label_(group.id == kWorldGroup ? "" : fmt::format("{} (process set {})", name_, group.id)),
      variant_of_rank_(static_cast<std::size_t>(size), -1) {}

void KnownTensor::record(int rank, std::size_t variant, std::int64_t first_dimension) {
  const auto own = static_cast<std::size_t>(rank);
  variant_of_rank_[own] = static_cast<int>(variant);
  ++submitted_;
  if (!has_rows(*variants_[variant])) return;
  dimensions_.resize(variant_of_rank_.size());
  dimensions_[own] = first_dimension;
}

void KnownTensor::submit(int rank, const Request& request) {
  std::size_t variant = 0;
  while (variant < variants_.size() && !agree(*variants_[variant], request)) ++variant;
  if (variant == variants_.size()) variants_.push_back(std::make_shared<const Request>(request));
  record(rank, variant, has_rows(request) ? request.shape.front() : 0);
}

void KnownTensor::submit_cached(int rank, const SharedRequest& request,
                                std::int64_t first_dimension) {
  std::size_t variant = 0;
  while (variant < variants_.size() && variants_[variant] != request &&
         !agree(*variants_[variant], *request)) {
    ++variant;
  }
  if (variant == variants_.size()) variants_.push_back(request);
  record(rank, variant, first_dimension);
}

std::vector<int> KnownTensor::ranks_of(std::size_t variant) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < variant_of_rank_.size(); ++rank) {
    if (variant_of_rank_[rank] == static_cast<int>(variant))
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

int KnownTensor::lowest_rank() const {
  const auto first = std::find_if(variant_of_rank_.begin(), variant_of_rank_.end(),
                                  [](int variant) { return variant >= 0; });
  return static_cast<int>(first - variant_of_rank_.begin());
}

const SharedRequest& KnownTensor::lowest_request() const {
  return variants_[static_cast<std::size_t>(variant_of(lowest_rank()))];
}

void KnownTensor::reset() {
  variants_.clear();
  std::fill(variant_of_rank_.begin(), variant_of_rank_.end(), -1);
  dimensions_.clear();
  submitted_ = 0;
  active_submitted = 0;
  state = State::kIdle;
}

}  // namespace fasthorovod::core
