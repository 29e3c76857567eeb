// Bundles in flight: tensors that one call submitted and that run together or fail together.
//
// A bundle belongs to a group. It is settled when every active rank of it has submitted as many
// members as it said there would be. If then all members are complete it runs; if not, the ranks
// put different tensors into it, and all of them fail. One member that ranks disagree about breaks
// the bundle: its members fail as they become complete. Thread: owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/known_tensor.h"
#include "core/membership.h"
#include "core/ready_list.h"

namespace fasthorovod::core {

class BundleTable final {
 public:
  /// A rank is about to submit `request`, which has a bundle, as `tensor`. Returns whether that may
  /// settle something: call settle() once the tensor holds the request. An error: more members than
  /// the rank said, which a healthy one never sends.
  Result<bool> add(int rank, const Request& request, KnownTensor& tensor,
                   const Membership& membership);

  /// A tensor failed or will never be complete: takes it out of every bundle any rank put it in,
  /// and breaks these. Returns what else fails now: members that are complete, or with `at_once`
  /// all.
  std::vector<ReadyUnit> break_bundles_of(const KnownTensor& tensor, const Error& error,
                                          const Membership& membership, bool at_once);

  /// What runs or fails now in the bundles any rank put `tensor` in.
  std::vector<ReadyUnit> settle(const KnownTensor& tensor, const Membership& membership);

  /// The same for all bundles, after a change of membership.
  std::vector<ReadyUnit> settle_all(const Membership& membership);

  /// The active ranks that have not submitted all members of the tensor's bundle.
  [[nodiscard]] std::vector<int> missing_of(const KnownTensor& tensor,
                                            const Membership& membership) const;

  /// Forgets all bundles of a group: their members have failed.
  void clear(const KnownGroup& group);

 private:
  struct Bundle {
    const KnownGroup* group = nullptr;
    std::vector<KnownTensor*> members;     // submitted by some rank and not settled
    std::vector<std::uint32_t> submitted;  // members, by rank
    std::vector<std::uint32_t> announced;  // bundle_size, by rank; 0 before the first member
    std::optional<Error> error;            // set: broken
  };
  using Key = std::pair<GroupId, std::string>;
  using Bundles = std::map<Key, Bundle>;

  static std::set<Key> keys_of(const KnownTensor& tensor);

  void settle_one(Bundles::iterator bundle, const Membership& membership, bool at_once,
                  std::vector<ReadyUnit>& units);

  Bundles bundles_;
};

}  // namespace fasthorovod::core
