// Hands out parts of an arena: blocks of whole pages, the lowest place that fits first. What is
// known of them is private to this process. Freed memory stays for the next block, but for what
// exceeds kKept: that goes back to the system.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <span>

#include "transport/arena.h"

namespace fasthorovod::transport {

class ArenaHeap final {
 public:
  /// Freed bytes that stay in memory.
  static constexpr std::size_t kKept = std::size_t{64} << 20;

  /// Hands out `part` of `arena`: whole pages.
  ArenaHeap(const Arena& arena, std::span<std::byte> part) : ArenaHeap(arena, part, part.size()) {}
  /// The same, but at most `limit` bytes at a time unless somebody asks to go beyond.
  ArenaHeap(const Arena& arena, std::span<std::byte> part, std::size_t limit);

  /// Page aligned, at least `bytes`, contents undefined; empty when no place is that large, or when
  /// that would exceed the limit.
  [[nodiscard]] std::span<std::byte> allocate(std::size_t bytes);
  /// Whatever the limit says.
  [[nodiscard]] std::span<std::byte> allocate_beyond(std::size_t bytes);

  /// Takes a block back, as allocate returned it.
  void release(std::span<std::byte> block);

  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t limit() const { return limit_; }

 private:
  std::span<std::byte> take(std::size_t bytes, std::size_t limit);

  const Arena& arena_;
  const std::span<std::byte> part_;
  const std::size_t limit_;

  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset in part_ -> bytes; neighbours are merged
  std::size_t used_ = 0;
  std::size_t touched_free_ = 0;  // bytes freed since they were last given back
};

}  // namespace fasthorovod::transport
