#include "core/cache_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/agreement.h"
#include "core/response_cache.h"

namespace fasthorovod::core {

CacheLedger::CacheLedger(int size, std::uint32_t capacity)
    : capacity_(std::min(capacity, kMaxCachePositions / 2)),
      applied_(static_cast<std::size_t>(size)) {}

const CacheLedger::Slot* CacheLedger::at(std::uint32_t position) const {
  if (position >= slots_.size() || !slots_[position].request) return nullptr;
  return &slots_[position];
}

Status CacheLedger::acknowledge(int rank, std::uint64_t plan, std::uint64_t last_plan,
                                const Membership& membership) {
  std::uint64_t& applied = applied_[static_cast<std::size_t>(rank)];
  if (plan < applied || plan > last_plan) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("rank {} says it applied plan {} after {} of {}", rank, plan, applied,
                             last_plan),
                 rank};
  }
  if (plan == applied) return {};
  applied = plan;
  release_retired(membership);
  return {};
}

void CacheLedger::release_retired(const Membership& membership) {
  if (retired_.empty()) return;
  std::uint64_t everywhere = std::numeric_limits<std::uint64_t>::max();
  for (int rank = 0; rank < membership.size(); ++rank) {
    if (membership.has_left(rank)) continue;
    everywhere = std::min(everywhere, applied_[static_cast<std::size_t>(rank)]);
  }
  for (; !retired_.empty() && retired_.front().plan <= everywhere; retired_.pop_front()) {
    const std::uint32_t position = retired_.front().position;
    slots_[position] = Slot{};
    free_.push_back(position);
  }
}

bool CacheLedger::use(const KnownTensor& tensor, std::uint64_t plan) {
  if (!tensor.cache_position) return false;
  Slot& slot = slots_[*tensor.cache_position];
  const SharedRequest& request = tensor.lowest_request();
  if (slot.request != request && !agree(*slot.request, *request)) return false;
  if (slot.first_dimensions != tensor.first_dimensions()) return false;
  ages_.splice(ages_.end(), ages_, slot.age);
  slot.last_used = plan;
  return true;
}

std::optional<std::uint32_t> CacheLedger::position_in(const KnownTensor& tensor,
                                                      std::uint64_t plan) const {
  if (!tensor.cache_position || slots_[*tensor.cache_position].last_used != plan) {
    return std::nullopt;
  }
  return tensor.cache_position;
}

KnownTensor* CacheLedger::store(KnownTensor& tensor, std::uint64_t plan,
                                std::vector<CacheChange>& changes) {
  if (tensor.cache_position) erase(*tensor.cache_position, plan, changes);
  KnownTensor* evicted = nullptr;
  const bool is_full = ages_.size() >= capacity_;
  if (is_full && (ages_.empty() || slots_[ages_.front()].last_used == plan)) return nullptr;
  const auto position = take_free_position();
  if (!position) return nullptr;
  if (is_full) {
    evicted = slots_[ages_.front()].tensor;
    erase(ages_.front(), plan, changes);
  }

  Slot& slot = slots_[*position];
  slot.request = tensor.lowest_request();
  slot.first_dimensions = tensor.first_dimensions();
  slot.tensor = &tensor;
  slot.age = ages_.insert(ages_.end(), *position);
  slot.last_used = plan;
  tensor.cache_position = position;
  changes.push_back({*position, true, *slot.request, slot.first_dimensions});
  if (!slot.first_dimensions.empty()) {
    changes.back().request.shape.front() =
        slot.first_dimensions[static_cast<std::size_t>(tensor.lowest_rank())];
  }
  return evicted;
}

void CacheLedger::erase(std::uint32_t position, std::uint64_t plan,
                        std::vector<CacheChange>& changes) {
  Slot& slot = slots_[position];
  ages_.erase(slot.age);
  slot.tensor->cache_position.reset();
  slot.tensor = nullptr;
  retired_.push_back({position, plan});
  changes.push_back({position, false});
}

std::optional<std::uint32_t> CacheLedger::take_free_position() {
  if (!free_.empty()) {
    const std::uint32_t position = free_.back();
    free_.pop_back();
    return position;
  }
  if (slots_.size() >= 2 * capacity_) return std::nullopt;
  slots_.emplace_back();
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

}  // namespace fasthorovod::core
