#include "ops/early_notices.h"

namespace fasthorovod::ops {

bool EarlyNotices::add(std::uint32_t group, std::uint64_t sequence, Early early) {
  if (count_ == kMost) return false;
  ++count_;
  by_operation_[{group, sequence}].push_back(std::move(early));
  return true;
}

std::vector<EarlyNotices::Early> EarlyNotices::take(std::uint32_t group, std::uint64_t sequence) {
  const auto found = by_operation_.find({group, sequence});
  if (found == by_operation_.end()) return {};
  std::vector<Early> early = std::move(found->second);
  by_operation_.erase(found);
  count_ -= early.size();
  return early;
}

void EarlyNotices::drop_group(std::uint32_t group) {
  auto entry = by_operation_.lower_bound({group, 0});
  while (entry != by_operation_.end() && entry->first.first == group) {
    count_ -= entry->second.size();
    entry = by_operation_.erase(entry);
  }
}

}  // namespace fasthorovod::ops
