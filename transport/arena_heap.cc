#include "transport/arena_heap.h"

#include <algorithm>
#include <iterator>

namespace fasthorovod::transport {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  return std::max(Arena::kPage, (bytes + Arena::kPage - 1) / Arena::kPage * Arena::kPage);
}

}  // namespace

ArenaHeap::ArenaHeap(const Arena& arena, std::span<std::byte> part, std::size_t limit)
    : arena_(arena), part_(part), limit_(limit) {
  if (!part.empty()) free_.emplace(0, part.size());
}

std::span<std::byte> ArenaHeap::allocate(std::size_t bytes) { return take(bytes, limit_); }
std::span<std::byte> ArenaHeap::allocate_beyond(std::size_t bytes) {
  return take(bytes, part_.size());
}

std::span<std::byte> ArenaHeap::take(std::size_t bytes, std::size_t limit) {
  const std::size_t size = whole_pages(bytes);
  const std::lock_guard lock(mutex_);
  if (used_ + size > limit) return {};
  const auto place =
      std::ranges::find_if(free_, [size](const auto& entry) { return entry.second >= size; });
  if (place == free_.end()) return {};
  const auto [offset, room] = *place;
  free_.erase(place);
  if (room > size) free_.emplace(offset + size, room - size);
  used_ += size;
  touched_free_ -= std::min(touched_free_, size);
  return part_.subspan(offset, size);
}

void ArenaHeap::release(std::span<std::byte> block) {
  if (block.empty()) return;
  const std::lock_guard lock(mutex_);
  used_ -= block.size();
  if (touched_free_ + block.size() > kKept) {
    arena_.discard(block);
  } else {
    touched_free_ += block.size();
  }
  auto offset = static_cast<std::size_t>(block.data() - part_.data());
  std::size_t size = block.size();
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && offset + size == next->first) {
    size += next->second;
    free_.erase(next);
  }
  free_.emplace(offset, size);
}

std::size_t ArenaHeap::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace fasthorovod::transport
