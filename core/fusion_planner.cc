#include "core/fusion_planner.h"

#include <algorithm>

namespace fasthorovod::core {

namespace {

// Only so many operations stay open for more: this bounds the work when nothing fits together, and
// what is older has hardly any room left.
constexpr std::size_t kMostOpen = 32;

struct Open {
  std::size_t operation = 0;  // index into the result
  FusionKey key;
  std::uint64_t room = 0;
};

}  // namespace

FusionKey fusion_key(const Request& request) {
  return {request.group,    request.type,      request.reduction,
          request.prescale, request.postscale, request.codec};
}

std::vector<std::vector<std::size_t>> plan_fusion(std::span<const FusionUnit> units,
                                                  std::uint64_t threshold) {
  std::vector<std::vector<std::size_t>> operations;
  std::vector<Open> open;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const FusionUnit& unit = units[i];
    const bool may_fuse = unit.fusable && threshold > 0 && unit.bytes <= threshold;
    if (may_fuse) {
      const auto fitting = std::find_if(open.begin(), open.end(), [&](const Open& each) {
        return each.room >= unit.bytes && each.key == unit.key;
      });
      if (fitting != open.end()) {
        operations[fitting->operation].push_back(i);
        fitting->room -= unit.bytes;
        continue;
      }
      if (open.size() == kMostOpen) open.erase(open.begin());
      open.push_back({operations.size(), unit.key, threshold - unit.bytes});
    }
    operations.push_back({i});
  }
  return operations;
}

}  // namespace fasthorovod::core
