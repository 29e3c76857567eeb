#include "core/aux_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/processor_list.h"

namespace fasthorovod::core {
namespace {

struct Candidate {
  AuxCore core;
  bool near = false;
  bool taken = false;  // a thread of the program is bound to it
};

std::vector<Candidate> candidates_of(const AuxCoreNeeds& needs) {
  std::map<int, Candidate> by_core;
  for (const Processor& processor : needs.processors) {
    Candidate& candidate = by_core[processor.core];
    candidate.core.core = processor.core;
    candidate.core.processors.push_back(processor.id);
    candidate.near |= processor.near;
    candidate.taken |= needs.bound.contains(processor.id);
  }
  std::vector<Candidate> candidates;
  for (auto& [core, candidate] : by_core) {
    std::ranges::sort(candidate.core.processors);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace

bool may_spare(int cores, int ranks_on_host, int auxiliaries) {
  return cores / std::max(ranks_on_host, 1) >= kCoresOfARank + auxiliaries;
}

std::vector<AuxCore> cores_to_spare(const AuxCoreNeeds& needs) {
  std::vector<Candidate> candidates = candidates_of(needs);
  int cores = static_cast<int>(candidates.size());
  if (needs.most_cores > 0) cores = std::min(cores, needs.most_cores);
  if (!may_spare(cores, needs.ranks_on_host, needs.auxiliaries)) return {};
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.taken; });
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.near != b.near ? a.near : a.core.core > b.core.core;
  });
  std::vector<AuxCore> cores_in_order;
  cores_in_order.reserve(candidates.size());
  for (Candidate& candidate : candidates) cores_in_order.push_back(std::move(candidate.core));
  return cores_in_order;
}

Result<std::vector<AuxCore>> listed_cores(const std::vector<int>& list, const AuxCoreNeeds& needs) {
  const auto refuse = [&list](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("FASTHOROVOD_AUX_PINNING=\"{}\": {}", to_processor_list(list), why)};
  };
  std::vector<AuxCore> cores;
  for (const int id : list) {
    const auto found = std::ranges::find(needs.processors, id, &Processor::id);
    if (found == needs.processors.end()) {
      std::vector<int> allowed;
      allowed.reserve(needs.processors.size());
      for (const Processor& processor : needs.processors) allowed.push_back(processor.id);
      std::ranges::sort(allowed);
      return refuse(fmt::format("this process may not run on processor {}, only on {}", id,
                                to_processor_list(allowed)));
    }
    const auto other = std::ranges::find(cores, found->core, &AuxCore::core);
    if (other != cores.end()) {
      return refuse(
          fmt::format("processors {} and {} are of one core", other->processors.front(), id));
    }
    cores.push_back({.core = found->core, .processors = {id}});
  }
  if (std::cmp_less(cores.size(), needs.auxiliaries)) {
    return refuse(
        fmt::format("those are fewer than the {} auxiliaries of a rank", needs.auxiliaries));
  }
  return cores;
}

}  // namespace fasthorovod::core
