#include "ops/host_areas.h"

#include <gtest/gtest.h>

#include "ops/host_table.h"
#include "transport/arena.h"

namespace fasthorovod::ops {
namespace {

using transport::Arena;
using transport::ArenaHeap;

constexpr std::size_t kLargest = 4 * Arena::kPage;

struct Memory {
  explicit Memory(std::size_t bytes) : arena(*Arena::create(bytes)), heap(arena, arena.bytes()) {}
  Arena arena;
  ArenaHeap heap;
};

TEST(HostAreas, KeepsRoomForTheNamedDoorWhateverGroupsTake) {
  Memory memory(10 * kLargest);
  HostAreas areas(memory.heap, kLargest, 4);
  while (!areas.reserve(kLargest, Door::kOrdered, false).empty()) {
  }
  std::vector<std::span<std::byte>> named;
  for (int i = 0; i < 4; ++i) {
    named.push_back(areas.reserve(kLargest, Door::kNamed, false));
    EXPECT_EQ(named.back().size(), kLargest);
  }
  EXPECT_TRUE(areas.reserve(1, Door::kNamed, false).empty());
  areas.release(named[2]);
  EXPECT_TRUE(areas.reserve(1, Door::kOrdered, false).empty());
  EXPECT_EQ(areas.reserve(1, Door::kNamed, false).data(), named[2].data());
}

TEST(HostAreas, TheNamedDoorMayUseTheRestToo) {
  Memory memory(6 * kLargest);
  HostAreas areas(memory.heap, kLargest, 4);
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(areas.reserve(kLargest, Door::kNamed, false).empty());
  EXPECT_TRUE(areas.reserve(kLargest, Door::kNamed, false).empty());
}

TEST(HostAreas, GivesNoMoreThanTheTableHasEntries) {
  Memory memory(2 * HostTable::kEntries * Arena::kPage);
  HostAreas areas(memory.heap, Arena::kPage, 4);
  std::vector<std::span<std::byte>> taken;
  for (std::size_t i = 0; i < HostTable::kEntries - 4 - HostAreas::kKeptEntries; ++i) {
    taken.push_back(areas.reserve(1, Door::kOrdered, false));
    ASSERT_FALSE(taken.back().empty());
  }
  EXPECT_TRUE(areas.reserve(1, Door::kOrdered, false).empty());
  areas.release(taken.front());
  EXPECT_FALSE(areas.reserve(1, Door::kOrdered, false).empty());
}

TEST(HostAreas, LetsAnOperationThatIsAloneGoBeyondTheLimit) {
  Memory memory(10 * kLargest);
  ArenaHeap limited(memory.arena, memory.arena.bytes(), 5 * kLargest);
  HostAreas areas(limited, kLargest, 4);
  EXPECT_FALSE(areas.reserve(kLargest, Door::kOrdered, true).empty());
  EXPECT_TRUE(areas.reserve(kLargest, Door::kOrdered, false).empty());
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(areas.reserve(kLargest, Door::kOrdered, true).empty());
  }
}

TEST(HostAreas, LeavesTheHeapAsItWasUnlessSomebodyMayReadAnArea) {
  Memory memory(10 * kLargest);
  {
    HostAreas areas(memory.heap, kLargest, 4);
    areas.release(areas.reserve(10, Door::kNamed, false));
    areas.release(areas.reserve(10, Door::kOrdered, false));
  }
  EXPECT_EQ(memory.heap.used(), 0U);
  {
    HostAreas areas(memory.heap, kLargest, 4);
    (void)areas.reserve(10, Door::kNamed, false);
  }
  EXPECT_EQ(memory.heap.used(), 4 * kLargest);
}

}  // namespace
}  // namespace fasthorovod::ops
