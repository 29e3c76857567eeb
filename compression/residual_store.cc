#include "compression/residual_store.h"

namespace fasthorovod::compression {

std::span<float> ResidualStore::of(core::GroupId group, const std::string& name,
                                   std::size_t elements) {
  std::vector<float>& residual = residuals_[{group, name}];
  if (residual.size() != elements) residual.assign(elements, 0.0F);
  return residual;
}

std::span<const float> ResidualStore::find(core::GroupId group, const std::string& name) const {
  const auto found = residuals_.find({group, name});
  return found == residuals_.end() ? std::span<const float>() : found->second;
}

std::vector<std::string> ResidualStore::names(core::GroupId group) const {
  std::vector<std::string> names;
  for (auto i = residuals_.lower_bound({group, ""}); i != residuals_.end(); ++i) {
    if (i->first.first != group) break;
    names.push_back(i->first.second);
  }
  return names;
}

void ResidualStore::forget(core::GroupId group) {
  std::erase_if(residuals_, [group](const auto& entry) { return entry.first.first == group; });
}

}  // namespace fasthorovod::compression
