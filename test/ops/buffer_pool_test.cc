#include "ops/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace fasthorovod::ops {
namespace {

TEST(BufferPool, HandsOutPageAlignedMemoryOfTheAskedSize) {
  BufferPool pool;
  const BufferPool::Buffer buffer = pool.acquire(10'000);
  EXPECT_EQ(buffer.first(10'000).size(), 10'000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.first(1).data()) % BufferPool::kAlignment, 0U);
}

TEST(BufferPool, ReusesTheSmallestBufferThatFits) {
  BufferPool pool;
  BufferPool::Buffer small = pool.acquire(4096);
  BufferPool::Buffer large = pool.acquire(1 << 20);
  const std::byte* small_memory = small.first(1).data();
  pool.release(std::move(large));
  pool.release(std::move(small));
  EXPECT_EQ(pool.acquire(100).first(1).data(), small_memory);
}

TEST(BufferPool, ForgetsTheSmallestWhenItHoldsTooMany) {
  BufferPool pool;
  std::vector<BufferPool::Buffer> buffers;
  for (std::size_t i = 1; i <= BufferPool::kKept + 1; ++i)
    buffers.push_back(pool.acquire(i * 4096));
  for (BufferPool::Buffer& buffer : buffers) pool.release(std::move(buffer));
  EXPECT_EQ(pool.acquire(1).capacity(), 2 * 4096U);
}

TEST(BufferPool, TakesBackABufferThatWasNeverUsed) {
  BufferPool pool;
  pool.release({});
  EXPECT_EQ(pool.acquire(1).capacity(), 4096U);
}

}  // namespace
}  // namespace fasthorovod::ops
