#include "transport/flow_sender.h"

#include <gtest/gtest.h>

#include "test/transport/fake_chunk_work.h"
#include "test/transport/socket_pair.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunk = 64 << 10;

FlowSpeed of_no_limit() {
  FlowSpeed speed;
  core::TimePoint now{1s};
  for (std::uint64_t i = 1; i <= 20; ++i) speed.observe(now += 50us, i * kChunk, 0);
  return speed;
}

class FlowSenderTest : public testing::Test {
 protected:
  bool takes_more(FlowSender& sender) {
    work_.queue(1, ++sequence_, 0, kChunk, FakeChunkWork::Mode::kInto);
    sender.start(*work_.take(1));
    return sender.takes_more();
  }

  FakeChunkWork work_;
  LaneCounters counters_;
  std::uint64_t sequence_ = 0;
  SocketPair sockets_ = connected_pair(SocketKind::kTcp);
};

TEST_F(FlowSenderTest, TakesChunksOneByOneAtFirst) {
  FlowSender sender(1, sockets_.first.get(), 256 << 10, work_, counters_);
  EXPECT_FALSE(sender.unlimited());
  EXPECT_EQ(sender.joins_up_to(), 0U);
  EXPECT_FALSE(takes_more(sender));
}

TEST_F(FlowSenderTest, JoinsAndCollectsChunksWhereNothingLimitsTheNetwork) {
  FlowSender sender(1, sockets_.first.get(), 256 << 10, work_, counters_, of_no_limit());
  EXPECT_TRUE(sender.unlimited());
  EXPECT_GT(sender.joins_up_to(), 2U * (253U << 10)) << "two of the largest chunks";
  EXPECT_TRUE(takes_more(sender));
}

}  // namespace
}  // namespace fasthorovod::transport
