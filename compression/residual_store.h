// The residuals of one rank: what encoding lost of each tensor, kept for its next step. Keyed by
// group and name, for those outlive a step; how tensors were fused, or where they lie, does not.
// Thread: owner.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/request.h"

namespace fasthorovod::compression {

class ResidualStore final {
 public:
  /// The residual of a tensor: zeros when there was none, or one of another size. Valid until the
  /// next call for the same tensor that asks for another size, or forgets it.
  std::span<float> of(core::GroupId group, const std::string& name, std::size_t elements);

  /// The residual of a tensor as it is; empty when there is none.
  [[nodiscard]] std::span<const float> find(core::GroupId group, const std::string& name) const;

  /// The names of a group's residuals, in order.
  [[nodiscard]] std::vector<std::string> names(core::GroupId group) const;

  /// The group is no more.
  void forget(core::GroupId group);

 private:
  std::map<std::pair<core::GroupId, std::string>, std::vector<float>> residuals_;
};

}  // namespace fasthorovod::compression
