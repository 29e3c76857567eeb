#include "transport/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "transport/arena_heap.h"

namespace fasthorovod::transport {
namespace {

constexpr std::size_t kMiB = 1 << 20;

std::size_t resident_bytes(const Arena& arena) {
  struct stat status {};
  EXPECT_EQ(::fstat(arena.fd(), &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(Arena, CostsMemoryOnlyWhereItWasWritten) {
  const auto arena = Arena::create(256 * kMiB);
  ASSERT_TRUE(arena);
  EXPECT_EQ(resident_bytes(*arena), 0U);
  std::memset(arena->bytes().subspan(100 * kMiB).data(), 1, 2 * kMiB);
  EXPECT_EQ(resident_bytes(*arena), 2 * kMiB);
  arena->discard(arena->bytes().subspan(100 * kMiB, kMiB));
  EXPECT_EQ(resident_bytes(*arena), kMiB);
  EXPECT_EQ(arena->bytes()[100 * kMiB], std::byte{0});
  EXPECT_EQ(arena->bytes()[101 * kMiB], std::byte{1});
}

TEST(Arena, IsTheSameMemoryThroughEveryMapping) {
  const auto arena = Arena::create(1);
  ASSERT_TRUE(arena);
  EXPECT_EQ(arena->bytes().size(), Arena::kPage);
  const auto other = Arena::open(FileDescriptor(::dup(arena->fd())));
  ASSERT_TRUE(other);
  ASSERT_EQ(other->bytes().size(), arena->bytes().size());
  arena->bytes()[17] = std::byte{5};
  EXPECT_EQ(other->bytes()[17], std::byte{5});
}

TEST(Arena, KeepsItsSizeForEver) {
  const auto arena = Arena::create(kMiB);
  ASSERT_TRUE(arena);
  EXPECT_NE(::ftruncate(arena->fd(), 0), 0);
  EXPECT_NE(::ftruncate(arena->fd(), 2 * kMiB), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(Arena, OpensNothingElse) {
  EXPECT_EQ(Arena::open(FileDescriptor()).error().code, core::ErrorCode::kProtocol);
  EXPECT_FALSE(Arena::open(FileDescriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC))));
  FileDescriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kMiB), 0);
  EXPECT_FALSE(Arena::open(std::move(unsealed)));
}

TEST(Arena, KnowsWhatLiesInIt) {
  const auto arena = Arena::create(kMiB);
  ASSERT_TRUE(arena);
  std::vector<std::byte> elsewhere(10);
  EXPECT_TRUE(arena->contains(arena->bytes()));
  EXPECT_TRUE(arena->contains(arena->bytes().subspan(5, 7)));
  EXPECT_EQ(arena->offset_of(arena->bytes().subspan(5, 7)), 5U);
  EXPECT_FALSE(arena->contains(elsewhere));
}

TEST(ArenaHeap, HandsOutWholePagesUntilNoneIsLeft) {
  const auto arena = Arena::create(4 * Arena::kPage);
  ASSERT_TRUE(arena);
  ArenaHeap heap(*arena, arena->bytes().subspan(Arena::kPage));
  const auto first = heap.allocate(1);
  const auto second = heap.allocate(Arena::kPage + 1);
  EXPECT_EQ(first.size(), Arena::kPage);
  EXPECT_EQ(second.size(), 2 * Arena::kPage);
  EXPECT_EQ(arena->offset_of(first), Arena::kPage);
  EXPECT_TRUE(heap.allocate(1).empty());
  EXPECT_EQ(heap.used(), 3 * Arena::kPage);
  heap.release(first);
  EXPECT_TRUE(heap.allocate(Arena::kPage + 1).empty());
  EXPECT_EQ(heap.allocate(0).data(), first.data());
}

TEST(ArenaHeap, NeverHandsOutAPlaceTwiceAndMergesWhatComesBack) {
  const auto arena = Arena::create(64 * kMiB);
  ASSERT_TRUE(arena);
  ArenaHeap heap(*arena, arena->bytes());
  std::mt19937 random(7);
  std::vector<std::span<std::byte>> blocks;
  for (int step = 0; step < 2000; ++step) {
    if (blocks.size() < 20 && random() % 2 == 0) {
      const auto block = heap.allocate(random() % (3 * kMiB));
      if (!block.empty()) blocks.push_back(block);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      heap.release(blocks.back());
      blocks.pop_back();
    }
    std::vector<std::span<std::byte>> sorted = blocks;
    std::ranges::sort(sorted, {}, [](const auto& block) { return block.data(); });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      ASSERT_LE(sorted[i - 1].data() + sorted[i - 1].size(), sorted[i].data());
    }
  }
  for (const auto& block : blocks) heap.release(block);
  EXPECT_EQ(heap.used(), 0U);
  EXPECT_EQ(heap.allocate(64 * kMiB).size(), 64 * kMiB);
}

TEST(ArenaHeap, GoesBeyondItsLimitOnlyWhenAsked) {
  const auto arena = Arena::create(8 * Arena::kPage);
  ASSERT_TRUE(arena);
  ArenaHeap heap(*arena, arena->bytes(), 2 * Arena::kPage);
  const auto first = heap.allocate(2 * Arena::kPage);
  EXPECT_FALSE(first.empty());
  EXPECT_TRUE(heap.allocate(1).empty());
  EXPECT_EQ(heap.allocate_beyond(6 * Arena::kPage).size(), 6 * Arena::kPage);
  EXPECT_TRUE(heap.allocate_beyond(1).empty());
  heap.release(first);
  EXPECT_TRUE(heap.allocate(1).empty());
}

TEST(ArenaHeap, GivesBackWhatIsTooMuchToKeep) {
  const auto arena = Arena::create(4 * ArenaHeap::kKept);
  ASSERT_TRUE(arena);
  ArenaHeap heap(*arena, arena->bytes());
  std::vector<std::span<std::byte>> blocks;
  for (int i = 0; i < 2; ++i) {
    blocks.push_back(heap.allocate(ArenaHeap::kKept));
    std::ranges::fill(blocks.back(), std::byte{1});
  }
  EXPECT_EQ(resident_bytes(*arena), 2 * ArenaHeap::kKept);
  for (const auto& block : blocks) heap.release(block);
  EXPECT_EQ(resident_bytes(*arena), ArenaHeap::kKept);
}

}  // namespace
}  // namespace fasthorovod::transport
