#include "transport/flow_speed.h"

#include <gtest/gtest.h>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunk = 64 << 10;

struct Written {
  FlowSpeed flow;
  core::TimePoint now{1s};
  std::uint64_t written = 0;

  // A chunk is written, and some time later so much of everything waits.
  void chunk(core::Duration later, std::uint64_t waiting) {
    written += kChunk;
    now += later;
    flow.observe(now, written, waiting);
  }
};

TEST(FlowSpeed, BelievesWhatDrainsAgainAndAgain) {
  Written flow;
  EXPECT_FALSE(flow.flow.unlimited());
  for (int i = 0; i < 20; ++i) flow.chunk(50us, i % 2 == 0 ? 424 : 3 * kChunk);
  EXPECT_TRUE(flow.flow.unlimited()) << "a busy receiver is no slow network";
}

TEST(FlowSpeed, DoesNotBelieveABurst) {
  Written flow;
  for (int i = 0; i < 4; ++i) flow.chunk(50us, 0);
  EXPECT_FALSE(flow.flow.unlimited());
  for (int i = 0; i < 1000; ++i) flow.chunk(500us, 2 * kChunk);
  EXPECT_FALSE(flow.flow.unlimited()) << "a gigabit a second, always waiting";
}

TEST(FlowSpeed, DoesNotBelieveManySmallOperations) {
  Written flow;
  for (int i = 0; i < 1000; ++i) flow.chunk(1ms, 0);
  EXPECT_FALSE(flow.flow.unlimited());
}

TEST(FlowSpeed, BelievesNoLongerWhatIsNotFoundDrained) {
  Written flow;
  for (int i = 0; i < 20; ++i) flow.chunk(50us, 0);
  ASSERT_TRUE(flow.flow.unlimited());
  for (int i = 0; i < 5; ++i) flow.chunk(50us, kChunk);
  EXPECT_TRUE(flow.flow.unlimited());
  for (int i = 0; i < 10; ++i) flow.chunk(100us, kChunk);
  EXPECT_FALSE(flow.flow.unlimited());
}

}  // namespace
}  // namespace fasthorovod::transport
