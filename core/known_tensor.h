// A name the coordinator knows: because ranks have submitted it, because it is cached, or both.
// Thread: owner (the coordinator's).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/group_registry.h"
#include "core/request.h"
#include "core/stall_monitor.h"

namespace fasthorovod::core {

using SharedRequest = std::shared_ptr<const Request>;  // owners: cache slots and pending tensors

class KnownTensor final {
 public:
  enum class State {
    kIdle,      // nobody has it in flight
    kWaiting,   // some ranks submitted it, others are missing
    kComplete,  // all did and agree; the rest of its bundle is missing
    kReady,     // in the ready list
  };

  /// In a world of `size` ranks; the group lives longer.
  KnownTensor(const KnownGroup& group, std::string name, int size);

  [[nodiscard]] const KnownGroup& group() const { return group_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The name for messages, with the group where that is not the world.
  [[nodiscard]] const std::string& label() const { return label_.empty() ? name_ : label_; }
  [[nodiscard]] bool has_submitted(int rank) const { return variant_of(rank) >= 0; }
  [[nodiscard]] int submitted_count() const { return submitted_; }

  /// Takes one rank's request; that rank has none in flight (has_submitted).
  void submit(int rank, const Request& request);
  /// The same for a request out of the cache, which costs no copy.
  void submit_cached(int rank, const SharedRequest& request, std::int64_t first_dimension);

  /// The different requests, in order of arrival; one when all ranks agree (agree()).
  [[nodiscard]] const std::vector<SharedRequest>& variants() const { return variants_; }
  /// The ranks that submitted a variant, in order.
  [[nodiscard]] std::vector<int> ranks_of(std::size_t variant) const;

  /// What the lowest rank asked for. An all-gather's dimension 0 is that of some rank.
  [[nodiscard]] const SharedRequest& lowest_request() const;
  [[nodiscard]] int lowest_rank() const;
  /// All-gather: dimension 0 of every rank of the world, 0 where a rank has not submitted. Else
  /// empty.
  [[nodiscard]] const std::vector<std::int64_t>& first_dimensions() const { return dimensions_; }

  /// Forgets the submissions: the name may be used again.
  void reset();

  State state = State::kIdle;
  int active_submitted = 0;                     // of the ranks that are active
  std::uint64_t arrival = 0;                    // orders tensors by their first submission
  StallState stall{};                           // of the time it waits
  std::optional<std::uint32_t> cache_position;  // while it is cached

 private:
  [[nodiscard]] int variant_of(int rank) const {
    return variant_of_rank_[static_cast<std::size_t>(rank)];
  }
  void record(int rank, std::size_t variant, std::int64_t first_dimension);

  const KnownGroup& group_;
  std::string name_;
  std::string label_;  // empty: the name
  std::vector<SharedRequest> variants_;
  std::vector<int> variant_of_rank_;  // an index, or -1
  std::vector<std::int64_t> dimensions_;
  int submitted_ = 0;
};

}  // namespace fasthorovod::core
