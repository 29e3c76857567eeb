// Every tensor of this rank between submit and completion, by group and name. It is where a
// duplicate name is found and where submissions stop once the engine has failed or shut down.
//
// Thread: any; a mutex guards the table, since user threads submit while the engine's threads
// complete.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "ops/entry.h"

namespace fasthorovod::ops {

class PendingTable final {
 public:
  /// `on_fresh` is called, outside the lock, when a submission arrives while none was waiting to be
  /// taken.
  explicit PendingTable(std::function<void()> on_fresh);

  /// Accepts all of `submissions`, or none of them: kDuplicateName, kInvalidArgument (after a join
  /// that is still pending), or the error it was closed with.
  core::Result<std::vector<Handle>> add(std::vector<Submission> submissions);

  /// The submissions accepted since the last call, in order. They stay in the table.
  std::vector<EntryPtr> take_fresh();

  /// The pending tensor of that name, or null: this rank did not submit it (it has joined) or it
  /// failed meanwhile.
  [[nodiscard]] EntryPtr find(core::GroupId group, const std::string& name) const;

  /// Frees the name, lets go of the caller's memory and completes the handle.
  void complete(const EntryPtr& entry, const core::Status& status, int answer = -1);

  /// From now on add() fails with `error`; the first error stands.
  void close(const core::Error& error);

  [[nodiscard]] bool empty() const;

  /// What is pending now, in no particular order.
  [[nodiscard]] std::vector<EntryPtr> all() const;

 private:
  [[nodiscard]] std::optional<core::Error> refusal(const std::vector<Submission>& submissions,
                                                   const std::vector<std::string>& keys) const;
  static std::string key(core::GroupId group, const std::string& name);

  const std::function<void()> on_fresh_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, EntryPtr> entries_;
  std::vector<EntryPtr> fresh_;
  std::optional<core::Error> closed_;
  bool joining_ = false;  // a join is pending: this rank has said that it submits nothing more
};

}  // namespace fasthorovod::ops
