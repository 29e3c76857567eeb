#include "torch_binding/c10d/group_members.h"

#include <algorithm>

namespace fasthorovod::torch_binding {

std::optional<std::vector<int>> members_in(const RunningEngine& running,
                                           const c10d::DistributedBackendOptions& options) {
  std::vector<int> members;
  for (int i = 0; i < options.group_size; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::int64_t global =
        options.global_ranks_in_group.empty() ? i : options.global_ranks_in_group[index];
    if (running.global_ranks.empty()) {
      members.push_back(static_cast<int>(global));
    } else {
      const auto found = std::ranges::find(running.global_ranks, global);
      if (found == running.global_ranks.end()) return std::nullopt;
      members.push_back(static_cast<int>(found - running.global_ranks.begin()));
    }
    if (members.back() >= running.engine->world().size) return std::nullopt;
  }
  const auto own = static_cast<std::size_t>(options.group_rank);
  if (members[own] != running.engine->world().rank) return std::nullopt;
  return members;
}

}  // namespace fasthorovod::torch_binding
