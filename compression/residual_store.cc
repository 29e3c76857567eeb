#include "compression/residual_store.h"

namespace fasthorovod::compression {

std::span<float> ResidualStore::of(core::GroupId group, const std::string& name,
                                   std::size_t elements) {
  const std::lock_guard lock(mutex_);
  std::vector<float>& residual = residuals_[{group, name}];
  if (residual.size() != elements) residual.assign(elements, 0.0F);
  return residual;
}

std::vector<float> ResidualStore::get(core::GroupId group, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = residuals_.find({group, name});
  return found == residuals_.end() ? std::vector<float>() : found->second;
}

void ResidualStore::put(core::GroupId group, const std::string& name, std::vector<float> residual) {
  const std::lock_guard lock(mutex_);
  residuals_.insert_or_assign({group, name}, std::move(residual));
}

void ResidualStore::forget(core::GroupId group) {
  const std::lock_guard lock(mutex_);
  std::erase_if(residuals_, [group](const auto& entry) { return entry.first.first == group; });
}

}  // namespace fasthorovod::compression
