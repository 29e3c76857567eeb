#include "transport/tail_guard.h"

#include <gtest/gtest.h>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr core::TimePoint kNow{100s};
constexpr std::uint64_t kChunk = 256 << 10;
// Three flows of 30 MB/s and one of 7.5.
constexpr PeerRates::Comparison kSlow{.own = 7.5e6, .fastest = 30e6, .sum = 97.5e6};

TEST(TailGuard, ConcernsSlowFlowsOnly) {
  EXPECT_TRUE(TailGuard::concerns(kSlow));
  EXPECT_FALSE(TailGuard::concerns({.own = 16e6, .fastest = 30e6, .sum = 46e6}));
  EXPECT_FALSE(TailGuard::concerns({.own = 30e6, .fastest = 30e6, .sum = 97.5e6}));
  EXPECT_FALSE(TailGuard::concerns({})) << "nothing is known";
}

TEST(TailGuard, TakesWhileThereIsMuchToSend) {
  TailGuard guard;
  EXPECT_FALSE(guard.leaves({.next = kChunk, .untaken = 64 << 20}, kChunk, kSlow, kNow));
}

TEST(TailGuard, LeavesWhatOthersWouldHaveSentBefore) {
  TailGuard guard;
  // 35 ms of its own against 3 + 17.
  EXPECT_TRUE(guard.leaves({.next = kChunk, .untaken = kChunk}, 0, kSlow, kNow));
}

TEST(TailGuard, TakesWhatCostsLittle) {
  TailGuard guard;
  EXPECT_FALSE(guard.leaves({.next = 64 << 10, .untaken = 64 << 10}, 0, kSlow, kNow)) << "8.7 ms";
  EXPECT_TRUE(guard.leaves({.next = 64 << 10, .untaken = 64 << 10}, 64 << 10, kSlow, kNow));
}

TEST(TailGuard, CountsWhatTheFlowHoldsAlready) {
  TailGuard guard;
  const Backlog backlog{.next = kChunk, .untaken = 8 * kChunk};
  EXPECT_FALSE(guard.leaves(backlog, 0, kSlow, kNow));
  EXPECT_TRUE(guard.leaves(backlog, kChunk, kSlow, kNow));
}

TEST(TailGuard, LeavesNothingWhereNobodyKnowsWhatIsLeft) {
  TailGuard guard;
  EXPECT_FALSE(guard.leaves({}, kChunk, kSlow, kNow));
}

TEST(TailGuard, TakesAChunkThatNobodyElseTakes) {
  TailGuard guard;
  const Backlog backlog{.next = kChunk, .untaken = kChunk};
  EXPECT_TRUE(guard.leaves(backlog, 0, kSlow, kNow));
  EXPECT_TRUE(guard.leaves(backlog, 0, kSlow, kNow + 34ms));
  EXPECT_FALSE(guard.leaves(backlog, 0, kSlow, kNow + 35ms));
}

TEST(TailGuard, IsPatientAgainWhenAnotherTookOne) {
  TailGuard guard;
  EXPECT_TRUE(guard.leaves({.next = kChunk, .untaken = 2 * kChunk}, 0, kSlow, kNow));
  EXPECT_TRUE(guard.leaves({.next = kChunk, .untaken = kChunk}, 0, kSlow, kNow + 34ms));
  EXPECT_TRUE(guard.leaves({.next = kChunk, .untaken = kChunk}, 0, kSlow, kNow + 68ms));
  EXPECT_FALSE(guard.leaves({.next = kChunk, .untaken = kChunk}, 0, kSlow, kNow + 69ms));
}

}  // namespace
}  // namespace fasthorovod::transport
