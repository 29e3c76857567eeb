#include "ops/buffer_pool.h"

#include <algorithm>
#include <new>
#include <utility>

namespace fasthorovod::ops {

void BufferRelease::operator()(std::byte* memory) const {
  if (heap != nullptr) return heap->release({memory, bytes});
  ::operator delete(memory, std::align_val_t{BufferPool::kAlignment});
}

BufferPool::Buffer BufferPool::acquire(std::size_t bytes) {
  const auto by_capacity = [](const Buffer& a, const Buffer& b) {
    return a.capacity_ < b.capacity_;
  };
  std::sort(idle_.begin(), idle_.end(), by_capacity);
  const auto fits = std::find_if(idle_.begin(), idle_.end(),
                                 [bytes](const Buffer& b) { return b.capacity_ >= bytes; });
  if (fits != idle_.end()) {
    Buffer buffer = std::move(*fits);
    idle_.erase(fits);
    return buffer;
  }
  return fresh(bytes);
}

BufferPool::Buffer BufferPool::fresh(std::size_t bytes) const {
  Buffer buffer;
  if (heap_ != nullptr) {
    const std::span<std::byte> block = heap_->allocate(bytes);
    if (!block.empty()) {
      buffer.capacity_ = block.size();
      buffer.memory_ = {block.data(), BufferRelease{heap_, block.size()}};
      return buffer;
    }
  }
  buffer.capacity_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  buffer.memory_.reset(
      static_cast<std::byte*>(::operator new(buffer.capacity_, std::align_val_t{kAlignment})));
  return buffer;
}

void BufferPool::release(Buffer buffer) {
  if (buffer.capacity_ == 0) return;
  idle_.push_back(std::move(buffer));
  if (idle_.size() <= kKept) return;
  const auto smallest =
      std::min_element(idle_.begin(), idle_.end(),
                       [](const Buffer& a, const Buffer& b) { return a.capacity_ < b.capacity_; });
  idle_.erase(smallest);
}

}  // namespace fasthorovod::ops
