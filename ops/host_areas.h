// The areas of a rank's operations in its arena, and how many there may be at a time: as many as
// its table has entries.
//
// Groups must not wait for each other's memory: two ranks of two groups, each with an area for its
// own and none for the other, would wait for ever. So some areas are kept for the named door, and
// the one operation that a group has under way may go beyond the heap's limit, and take an entry of
// those that are kept for such operations. Thread: any.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "ops/wire_group.h"
#include "transport/arena_heap.h"

namespace fasthorovod::ops {

class HostAreas final {
 public:
  /// Keeps `kept` areas of `largest` bytes for the named door: `heap` must have room for them.
  HostAreas(transport::ArenaHeap& heap, std::size_t largest, std::size_t kept);
  ~HostAreas();
  HostAreas(const HostAreas&) = delete;
  HostAreas& operator=(const HostAreas&) = delete;

  /// Entries of the table that only operations take that are alone in their groups.
  static constexpr std::size_t kKeptEntries = 128;

  /// At most `largest` bytes. `alone`: the group has nothing else under way on this rank. Empty:
  /// nothing is free now.
  [[nodiscard]] std::span<std::byte> reserve(std::size_t bytes, Door door, bool alone);
  /// Takes back what reserve returned.
  void release(std::span<std::byte> area);

 private:
  [[nodiscard]] bool is_kept(std::span<const std::byte> area) const;

  transport::ArenaHeap& heap_;
  const std::size_t largest_;
  const std::span<std::byte> kept_;
  const std::size_t most_others_;

  std::mutex mutex_;
  std::vector<std::span<std::byte>> idle_;  // of those kept; the last one used is the first again
  std::size_t others_ = 0;                  // areas from the heap
};

}  // namespace fasthorovod::ops
