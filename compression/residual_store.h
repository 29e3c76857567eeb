// The residuals of one rank: what encoding lost of each tensor, kept for its next step. Keyed by
// group and name, which outlive a step; how tensors were fused, or where they lay, does not count.
//
// Thread: any; a mutex guards the table. The values of a residual belong to whoever has its tensor
// in flight.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/request.h"

namespace fasthorovod::compression {

class ResidualStore final {
 public:
  /// The residual of a tensor: zeros when there was none, or one of another size. Valid until the
  /// tensor is put, forgotten, or asked for with another size.
  std::span<float> of(core::GroupId group, const std::string& name, std::size_t elements);

  /// A copy of the residual of a tensor that is not in flight; empty when there is none.
  [[nodiscard]] std::vector<float> get(core::GroupId group, const std::string& name) const;

  /// Replaces the residual of a tensor that is not in flight.
  void put(core::GroupId group, const std::string& name, std::vector<float> residual);

  /// The group is no more.
  void forget(core::GroupId group);

 private:
  using Key = std::pair<core::GroupId, std::string>;

  mutable std::mutex mutex_;
  std::map<Key, std::vector<float>> residuals_;
};

}  // namespace fasthorovod::compression
