// The coordinator's side of the response cache: which request sits at which position on every rank,
// which is evicted, and when a position may be used again. Thread: owner.
//
// A position that is freed by plan n keeps its meaning here until every rank has said that it
// applied plan n: until then a rank may still send the bit. Positions therefore outnumber the
// capacity, up to twice; when all are taken or waiting, new tensors are simply not cached for now.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <vector>

#include "core/known_tensor.h"
#include "core/membership.h"
#include "core/plan.h"
#include "core/result.h"

namespace fasthorovod::core {

class CacheLedger final {
 public:
  CacheLedger(int size, std::uint32_t capacity);

  struct Slot {
    SharedRequest request;  // null: free
    std::vector<std::int64_t> first_dimensions;
    KnownTensor* tensor = nullptr;  // null once freed by a plan: look it up by name

    // bookkeeping of the ledger
    std::list<std::uint32_t>::iterator age{};
    std::uint64_t last_used = 0;
  };

  /// What a rank's bit means, or null when no healthy rank sends it.
  [[nodiscard]] const Slot* at(std::uint32_t position) const;

  /// A rank applied the plans up to that number. An error: a number that goes back, or was never
  /// given out.
  Status acknowledge(int rank, std::uint64_t plan, std::uint64_t last_plan,
                     const Membership& membership);

  /// If exactly this tensor, as submitted, is cached: notes the use and returns true.
  bool use(const KnownTensor& tensor, std::uint64_t plan);

  /// The position by which this plan may name a tensor: of one that it used or stored.
  [[nodiscard]] std::optional<std::uint32_t> position_in(const KnownTensor& tensor,
                                                         std::uint64_t plan) const;

  /// Stores a tensor that use() did not find, as submitted, and records the changes. Replaces what
  /// is cached under its name; may evict what this plan does not use, and returns that tensor. Does
  /// nothing when there is no room.
  KnownTensor* store(KnownTensor& tensor, std::uint64_t plan, std::vector<CacheChange>& changes);

 private:
  void erase(std::uint32_t position, std::uint64_t plan, std::vector<CacheChange>& changes);
  std::optional<std::uint32_t> take_free_position();
  void release_retired(const Membership& membership);

  struct Retired {
    std::uint32_t position = 0;
    std::uint64_t plan = 0;  // the plan that freed it
  };

  std::size_t capacity_;
  std::vector<Slot> slots_;
  std::list<std::uint32_t> ages_;       // live positions, least recently used first
  std::vector<std::uint32_t> free_;     // positions below slots_.size() that may be given out
  std::deque<Retired> retired_;         // in order of plans
  std::vector<std::uint64_t> applied_;  // by rank
};

}  // namespace fasthorovod::core
