#include <algorithm>
#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "torch_binding/c10d/backend.h"
#include "torch_binding/c10d/meeting.h"

namespace fasthorovod::torch_binding {

// A group over the same engine, as new_group() makes it. It meets where its parent did: torch's
// store for it has a name of the parent before its keys, on which ranks may not agree.
c10::intrusive_ptr<c10d::Backend> EngineBackend::split(
    const c10::intrusive_ptr<c10d::Store>& /*store*/, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  check_open();
  const auto own = std::ranges::find(ranks, rank_);
  if (own == ranks.end()) return nullptr;
  c10d::DistributedBackendOptions child;
  child.group_rank = static_cast<int>(own - ranks.begin());
  child.group_size = static_cast<int>(ranks.size());
  child.timeout = options->timeout;
  child.group_id = options->group_name;
  for (const int rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    child.global_ranks_in_group.push_back(
        group_.global_ranks.empty() ? rank
                                    : static_cast<std::int64_t>(group_.global_ranks.at(index)));
  }
  auto group = form_group(child, group_.meeting_store, holder_);
  if (!group) std::rethrow_exception(to_exception(group.error()));
  return c10::make_intrusive<EngineBackend>(*std::move(group), holder_);
}

}  // namespace fasthorovod::torch_binding
