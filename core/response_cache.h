// The response cache of one rank: which of its requests sits at which bit. A request seen before
// costs one bit to submit, and one position in a plan.
//
// Positions are decided by the coordinator alone and arrive as CacheChange in plans, so every rank
// and the coordinator number the same tensors alike, also under eviction. What is stored is this
// rank's own request (an all-gather's first dimension may differ between ranks). Thread: owner (the
// engine thread).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan.h"
#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::core {

class ResponseCache final {
 public:
  /// The position of exactly this request, or nothing: never seen, evicted, or other parameters
  /// than last time.
  [[nodiscard]] std::optional<std::uint32_t> find(const Request& request) const;

  /// The request stored at a position, or null.
  [[nodiscard]] const Request* at(std::uint32_t position) const;

  /// Applies a plan on `rank`: makes its cache changes in order, then fills in name, shape and
  /// first dimensions of every tensor that has a cache position. Once per plan, in order of their
  /// numbers, on every rank, the coordinator's too, also while joined. An error (a position that
  /// holds nothing, or too far out) means that the coordinator and this rank no longer agree.
  Status apply(Plan& plan, int rank);

  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    Request request;  // this rank's own
    PlanTensor tensor;
  };

  void erase(std::uint32_t position);
  Status insert(const CacheChange& change, int rank);

  std::vector<std::optional<Entry>> entries_;
  using Positions = std::unordered_map<std::string, std::uint32_t>;  // by name
  std::unordered_map<GroupId, Positions> positions_;
};

/// Positions stay below this, so that no message makes anybody allocate without end.
inline constexpr std::uint32_t kMaxCachePositions = 1u << 20;

/// Sets bit `position`, growing the vector.
void set_bit(std::vector<std::uint64_t>& bits, std::uint32_t position);

}  // namespace fasthorovod::core
