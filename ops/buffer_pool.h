// Memory for fused buffers, reused from operation to operation: fresh pages cost more than the copy
// into them.
//
// At most kKept buffers stay when idle; the smallest goes first. With an arena they come from
// there, so that auxiliaries see them, as long as it has room. Thread: owner (the worker).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transport/arena_heap.h"

namespace fasthorovod::ops {

/// Gives memory back to where it came from: a heap, or, without one, this process's own.
struct BufferRelease {
  transport::ArenaHeap* heap = nullptr;
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const;
};

class BufferPool final {
 public:
  static constexpr std::size_t kKept = 4;
  static constexpr std::size_t kAlignment = 4096;

  class Buffer {
   public:
    Buffer() = default;
    [[nodiscard]] std::span<std::byte> first(std::size_t bytes) const {
      return {memory_.get(), bytes};
    }
    [[nodiscard]] std::size_t capacity() const { return capacity_; }

   private:
    friend class BufferPool;
    std::unique_ptr<std::byte, BufferRelease> memory_;
    std::size_t capacity_ = 0;
  };

  /// From now on. The heap outlives all buffers.
  void use(transport::ArenaHeap& heap) { heap_ = &heap; }

  /// At least `bytes`, page aligned, contents undefined. std::bad_alloc when there is no memory.
  Buffer acquire(std::size_t bytes);
  void release(Buffer buffer);

 private:
  [[nodiscard]] Buffer fresh(std::size_t bytes) const;

  transport::ArenaHeap* heap_ = nullptr;
  std::vector<Buffer> idle_;
};

}  // namespace fasthorovod::ops
