// A chunk that neither an int nor one call of the kernel can hold.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "test/transport/lane_fixture.h"

namespace fasthorovod::transport {
namespace {

TEST(Lane, CountsBeyondTwoGibibytes) {
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 9;
  void* const zeros =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  {
    LaneNode a;
    LaneNode b;
    join(a, 0, b, 1, SocketKind::kTcp, 1);
    a.work.queue_lent(1, 1, {static_cast<const std::byte*>(zeros), kBytes});
    a.lane().wake();
    EXPECT_TRUE(b.work.wait_received(1));
    EXPECT_TRUE(a.work.wait_sent(1));
    EXPECT_EQ(b.work.counted_bytes(), kBytes);
    EXPECT_EQ(a.lane().statistics().bytes_sent, kBytes + kFrameHeaderBytes);
  }
  ::munmap(zeros, kBytes);
}

}  // namespace
}  // namespace fasthorovod::transport
