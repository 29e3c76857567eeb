// Which ready operations run together as one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/request.h"

namespace fasthorovod::core {

/// What must be equal for all-reduces to share one operation.
struct FusionKey {
  GroupId group = kWorldGroup;
  DataType type = DataType::kFloat32;
  Reduction reduction = Reduction::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  CodecChoice codec{};

  friend bool operator==(const FusionKey&, const FusionKey&) = default;
};

FusionKey fusion_key(const Request& request);

/// One ready thing that is never split: a tensor, or what a bundle holds of one key.
struct FusionUnit {
  FusionKey key;
  std::uint64_t bytes = 0;
  bool fusable = true;  // false: an operation of its own, whatever its key
};

/// Puts units together, in order: each goes to the first operation begun that has its key and room
/// below the threshold, so a unit that does not fit is passed by those behind it. A unit larger
/// than the threshold is alone; threshold 0 leaves every unit alone. Returns indices into `units`;
/// operations are in the order of their first unit.
std::vector<std::vector<std::size_t>> plan_fusion(std::span<const FusionUnit> units,
                                                  std::uint64_t threshold);

}  // namespace fasthorovod::core
