#include "core/bundle_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/agreement.h"

namespace fasthorovod::core {

namespace {

std::vector<int> submitters(const KnownTensor& tensor, const Membership& membership) {
  std::vector<int> ranks;
  for (int rank = 0; rank < membership.size(); ++rank) {
    if (tensor.has_submitted(rank)) ranks.push_back(rank);
  }
  return ranks;
}

bool is_complete(const KnownTensor* tensor) {
  return tensor->state == KnownTensor::State::kComplete;
}

// Says of the first member that some ranks lack who has it.
Error different_members(const std::string& bundle, const std::vector<KnownTensor*>& members,
                        const Membership& membership) {
  const auto lacking = std::find_if_not(members.begin(), members.end(), is_complete);
  std::string detail = "their counts differ";
  if (lacking != members.end()) {
    detail = fmt::format("\"{}\" is in it on {} only", (*lacking)->name(),
                         describe_ranks(submitters(**lacking, membership)));
  }
  return {ErrorCode::kMismatch,
          fmt::format("bundle \"{}\": ranks disagree about its members: {}", bundle, detail)};
}

}  // namespace

// All bundles into which ranks put a tensor: one, unless they disagree.
std::set<BundleTable::Key> BundleTable::keys_of(const KnownTensor& tensor) {
  std::set<Key> keys;
  for (const SharedRequest& request : tensor.variants()) {
    if (!request->bundle.empty()) keys.emplace(tensor.group().id, request->bundle);
  }
  return keys;
}

Result<bool> BundleTable::add(int rank, const Request& request, KnownTensor& tensor,
                              const Membership& membership) {
  Bundle& bundle = bundles_[{tensor.group().id, request.bundle}];
  bundle.group = &tensor.group();
  bundle.submitted.resize(static_cast<std::size_t>(membership.size()));
  bundle.announced.resize(static_cast<std::size_t>(membership.size()));
  const auto own = static_cast<std::size_t>(rank);
  if (bundle.announced[own] == 0) bundle.announced[own] = request.bundle_size;
  if (bundle.submitted[own] == bundle.announced[own]) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("bundle \"{}\": rank {} announced {} tensors and submitted more",
                             request.bundle, rank, bundle.announced[own]),
                 rank};
  }
  ++bundle.submitted[own];
  // The first rank to put the tensor into this bundle makes it a member.
  const auto& earlier = tensor.variants();
  const bool is_member =
      std::any_of(earlier.begin(), earlier.end(),
                  [&](const SharedRequest& variant) { return variant->bundle == request.bundle; });
  if (!is_member) bundle.members.push_back(&tensor);
  return bundle.submitted[own] == bundle.announced[own] || bundle.error.has_value();
}

void BundleTable::settle_one(Bundles::iterator found, const Membership& membership, bool at_once,
                             std::vector<ReadyUnit>& units) {
  Bundle& bundle = found->second;
  bool all_submitted = true;
  bool all_or_nothing = true;  // no active rank is in the middle of submitting it
  for (const int rank : bundle.group->ranks) {
    if (!membership.is_active(rank)) continue;
    const auto own = static_cast<std::size_t>(rank);
    const bool has_all = bundle.submitted[own] == bundle.announced[own];
    all_submitted = all_submitted && bundle.announced[own] > 0 && has_all;
    all_or_nothing = all_or_nothing && has_all;
  }
  std::vector<KnownTensor*>& members = bundle.members;
  if (all_submitted && !bundle.error && !members.empty()) {
    const bool runs = std::all_of(members.begin(), members.end(), is_complete) &&
                      members.size() == members.front()->lowest_request()->bundle_size;
    if (runs) {
      units.push_back({std::exchange(members, {}), std::nullopt});
    } else {
      bundle.error = different_members(found->first.second, members, membership);
    }
  }
  if (bundle.error) {
    const auto stays =
        std::stable_partition(members.begin(), members.end(), [&](const KnownTensor* member) {
          return !(all_submitted || at_once || is_complete(member));
        });
    for (auto at = stays; at != members.end(); ++at) units.push_back({{*at}, bundle.error});
    members.erase(stays, members.end());
  }
  if (members.empty() && (all_or_nothing || at_once)) bundles_.erase(found);
}

std::vector<ReadyUnit> BundleTable::break_bundles_of(const KnownTensor& tensor, const Error& error,
                                                     const Membership& membership, bool at_once) {
  std::vector<ReadyUnit> units;
  for (const Key& key : keys_of(tensor)) {
    const auto found = bundles_.find(key);
    if (found == bundles_.end()) continue;
    Bundle& bundle = found->second;
    bundle.members.erase(std::remove(bundle.members.begin(), bundle.members.end(), &tensor),
                         bundle.members.end());
    if (!bundle.error) {
      bundle.error = Error{error.code, fmt::format("bundle \"{}\": {}", key.second, error.message),
                           error.culprit};
    }
    settle_one(found, membership, at_once, units);
  }
  return units;
}

std::vector<ReadyUnit> BundleTable::settle(const KnownTensor& tensor,
                                           const Membership& membership) {
  std::vector<ReadyUnit> units;
  for (const Key& key : keys_of(tensor)) {
    const auto found = bundles_.find(key);
    if (found != bundles_.end()) settle_one(found, membership, false, units);
  }
  return units;
}

std::vector<ReadyUnit> BundleTable::settle_all(const Membership& membership) {
  std::vector<ReadyUnit> units;
  for (auto at = bundles_.begin(); at != bundles_.end();) {
    const auto current = at++;  // settling may erase it
    settle_one(current, membership, false, units);
  }
  return units;
}

void BundleTable::clear(const KnownGroup& group) {
  std::erase_if(bundles_, [&](const auto& bundle) { return bundle.first.first == group.id; });
}

std::vector<int> BundleTable::missing_of(const KnownTensor& tensor,
                                         const Membership& membership) const {
  std::vector<int> missing;
  for (const Key& key : keys_of(tensor)) {
    const auto found = bundles_.find(key);
    if (found == bundles_.end()) continue;
    for (const int rank : tensor.group().ranks) {
      const auto own = static_cast<std::size_t>(rank);
      const Bundle& bundle = found->second;
      const bool has_all =
          bundle.announced[own] > 0 && bundle.submitted[own] == bundle.announced[own];
      if (membership.is_active(rank) && !has_all) missing.push_back(rank);
    }
  }
  return missing;
}

}  // namespace fasthorovod::core
