#include "ops/host_areas.h"

#include <cassert>

#include "ops/host_table.h"

namespace fasthorovod::ops {

HostAreas::HostAreas(transport::ArenaHeap& heap, std::size_t largest, std::size_t kept)
    : heap_(heap),
      largest_(largest),
      kept_(kept == 0 ? std::span<std::byte>{} : heap.allocate(kept * largest)),
      most_others_(HostTable::kEntries - kept) {
  assert((kept == 0 || !kept_.empty()) && "the heap must have room for the areas kept");
  for (std::size_t i = 0; i < kept; ++i) {
    idle_.push_back(kept_.subspan((kept - 1 - i) * largest, largest));
  }
}

// What was not given back may still be read by others.
HostAreas::~HostAreas() {
  if (idle_.size() * largest_ == kept_.size()) heap_.release(kept_);
}

std::span<std::byte> HostAreas::reserve(std::size_t bytes, Door door, bool alone) {
  const std::lock_guard lock(mutex_);
  if (door == Door::kNamed && !idle_.empty() && bytes <= largest_) {
    const std::span<std::byte> area = idle_.back();
    idle_.pop_back();
    return area;
  }
  if (others_ == (alone ? most_others_ : most_others_ - kKeptEntries)) return {};
  std::span<std::byte> area = heap_.allocate(bytes);
  if (area.empty() && alone) area = heap_.allocate_beyond(bytes);
  if (!area.empty()) ++others_;
  return area;
}

void HostAreas::release(std::span<std::byte> area) {
  const std::lock_guard lock(mutex_);
  if (is_kept(area)) {
    idle_.push_back(area);
  } else {
    heap_.release(area);
    --others_;
  }
}

bool HostAreas::is_kept(std::span<const std::byte> area) const {
  return area.data() >= kept_.data() && area.data() < kept_.data() + kept_.size();
}

}  // namespace fasthorovod::ops
