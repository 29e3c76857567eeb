#include "ops/host_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "transport/arena.h"

namespace fasthorovod::ops {
namespace {

using transport::Arena;

/// A rank's arena, and how a mate sees it: through a mapping of its own.
struct Pair {
  Pair()
      : own(*Arena::create(HostTable::bytes())),
        mates(*Arena::open(transport::FileDescriptor(::dup(own.fd())))),
        table(own.bytes()),
        seen(mates.bytes()) {}
  Arena own;
  Arena mates;
  HostTable table;
  HostTable seen;
};

TEST(HostTable, ShowsAMateWhatWasPublished) {
  Pair pair;
  EXPECT_FALSE(pair.seen.find({5, 6}));
  HostEntry* entry = pair.table.publish({{5, 6}, 77, 4096, "all-reduce of 'w'"});
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(pair.seen.publications(), 1U);
  const auto sighting = pair.seen.find({5, 6});
  ASSERT_TRUE(sighting);
  EXPECT_EQ(sighting->fingerprint, 77U);
  EXPECT_EQ(sighting->area, 4096U);
  EXPECT_FALSE(sighting->failed);
  EXPECT_EQ(sighting->description(), "all-reduce of 'w'");
  entry->slots[2].out.store(9);
  EXPECT_EQ(sighting->entry->slots[2].out.load(), 9U);
}

TEST(HostTable, TellsOperationsApartByGroupAndSequence) {
  Pair pair;
  (void)pair.table.publish({{5, 6}, 1, 0, ""});
  EXPECT_FALSE(pair.seen.find({6, 5}));
  EXPECT_FALSE(pair.seen.find({5, std::uint64_t{6} << 32}));
  // The same tag, but not the same key.
  EXPECT_FALSE(pair.seen.find({5, 6 | std::uint64_t{1} << 31}));
}

TEST(HostTable, SaysWhatBecameOfAnEntry) {
  Pair pair;
  HostEntry* entry = pair.table.publish({{1, 1}, 0, 0, ""});
  const auto sighting = pair.seen.find({1, 1});
  ASSERT_TRUE(sighting);
  EXPECT_EQ(sighting->now(), HostSighting::Now::kRunning);
  HostTable::fail(*entry);
  EXPECT_EQ(sighting->now(), HostSighting::Now::kFailed);
  EXPECT_TRUE(pair.seen.find({1, 1})->failed);
  pair.table.retire(*entry);
  EXPECT_EQ(sighting->now(), HostSighting::Now::kGone);
  EXPECT_FALSE(pair.seen.find({1, 1}));
  EXPECT_EQ(pair.table.publish({{1, 2}, 0, 0, ""}), entry);
  EXPECT_EQ(sighting->now(), HostSighting::Now::kGone);
}

TEST(HostTable, BeginsEveryEntryWithCountersOfZero) {
  Pair pair;
  HostEntry* entry = pair.table.publish({{1, 1}, 0, 0, "a long description"});
  for (HostSlot& slot : entry->slots) slot.in = slot.summed = slot.out = slot.copied = 3;
  pair.table.retire(*entry);
  ASSERT_EQ(pair.table.publish({{1, 2}, 0, 0, "b"}), entry);
  for (const HostSlot& slot : entry->slots) {
    EXPECT_EQ(slot.in + slot.summed + slot.out + slot.copied, 0U);
  }
  EXPECT_EQ(pair.seen.find({1, 2})->description(), "b");
}

TEST(HostTable, PublishesTheNextOperationInAnEntry) {
  Pair pair;
  HostEntry* entry = pair.table.publish({{1, 1}, 77, 4096, "a sum", {8192, HostLoan::kNothing}});
  const auto first = pair.seen.find({1, 1});
  ASSERT_TRUE(first);
  for (HostSlot& slot : entry->slots) slot.in = slot.summed = slot.out = slot.copied = 3;
  pair.table.publish_next(*entry, {1, 2}, 78);
  EXPECT_EQ(pair.seen.publications(), 2U);
  EXPECT_EQ(first->now(), HostSighting::Now::kGone);
  EXPECT_FALSE(pair.seen.find({1, 1}));
  EXPECT_FALSE(HostTable::find_in(*first->entry, {1, 1}));
  const auto next = pair.seen.find({1, 2});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->entry, first->entry);
  EXPECT_TRUE(HostTable::find_in(*first->entry, {1, 2}));
  EXPECT_EQ(next->fingerprint, 78U);
  EXPECT_EQ(next->area, 4096U);
  EXPECT_EQ(next->loan.input, 8192U);
  EXPECT_EQ(next->description(), "a sum");
  for (const HostSlot& slot : next->entry->slots) {
    EXPECT_EQ(slot.in + slot.summed + slot.out + slot.copied, 0U);
  }
}

TEST(HostTable, IsFullWhenAllEntriesAreTaken) {
  Pair pair;
  HostEntry* last = nullptr;
  for (std::uint64_t i = 0; i < HostTable::kEntries; ++i) {
    last = pair.table.publish({{1, i}, 0, 0, ""});
    ASSERT_NE(last, nullptr);
  }
  EXPECT_EQ(pair.table.publish({{1, 1000}, 0, 0, ""}), nullptr);
  pair.table.retire(*last);
  EXPECT_EQ(pair.table.publish({{1, 1000}, 0, 0, ""}), last);
}

TEST(HostTable, CutsALongDescription) {
  Pair pair;
  (void)pair.table.publish({{1, 1}, 0, 0, std::string(1000, 'x')});
  EXPECT_EQ(pair.seen.find({1, 1})->description(), std::string(HostEntry::kDescription, 'x'));
}

// One entry after another under two keys in turns: who finds one finds all of it.
TEST(HostTable, NeverShowsHalfOfAnEntry) {
  Pair pair;
  std::atomic<bool> over{false};
  std::thread owner([&] {
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      HostEntry* entry = pair.table.publish({{i % 2, 7}, i, i, ""});
      pair.table.retire(*entry);
    }
    over.store(true);
  });
  while (!over.load()) {
    const auto sighting = pair.seen.find({1, 7});
    if (!sighting) continue;
    EXPECT_EQ(sighting->fingerprint % 2, 1U);
    EXPECT_EQ(sighting->fingerprint, sighting->area);
  }
  owner.join();
}

// The same where entries are published anew without being taken back.
TEST(HostTable, NeverShowsHalfOfTheNextOperation) {
  Pair pair;
  HostEntry* entry = pair.table.publish({{0, 7}, 0, 0, ""});
  const HostEntry& seen = *pair.seen.find({0, 7})->entry;
  std::atomic<bool> over{false};
  std::thread owner([&] {
    for (std::uint32_t i = 1; i < 20'000; ++i) {
      pair.table.publish_next(*entry, {i % 2, 7}, i);
      entry->slots[0].in.store(i);
    }
    over.store(true);
  });
  while (!over.load()) {
    const auto sighting = HostTable::find_in(seen, {1, 7});
    if (!sighting) continue;
    EXPECT_EQ(sighting->fingerprint % 2, 1U);
    const std::uint32_t in = seen.slots[0].in.load();
    if (sighting->now() == HostSighting::Now::kRunning) {
      EXPECT_TRUE(in == 0 || in == sighting->fingerprint) << in;
    }
  }
  owner.join();
}

// One rank of a host spins a while before it sleeps; where there are more than cores, it yields.
class HostBellOfRanks : public testing::TestWithParam<std::size_t> {};

// Each sleeps until the other has rung: one ring that is lost, and they sleep for ever.
TEST_P(HostBellOfRanks, LosesNoRing) {
  Pair pair;
  Pair partner;
  const HostWatch watch(GetParam());
  std::atomic<std::uint32_t> turn{0};
  const auto play = [&](HostBell& own, HostBell& others, std::uint32_t parity) {
    for (std::uint32_t round = parity; round < 20'000; round += 2) {
      while (turn.load() != round) {
        const std::uint32_t since = own.doze();
        if (turn.load() == round) {
          own.stay_awake();
        } else {
          own.sleep(since, watch);
        }
      }
      turn.store(round + 1);
      others.ring();
    }
  };
  std::thread mate(play, std::ref(partner.table.bell()), std::ref(pair.seen.bell()), 1);
  play(pair.table.bell(), partner.seen.bell(), 0);
  mate.join();
  EXPECT_EQ(turn.load(), 20'000U);
}

INSTANTIATE_TEST_SUITE_P(Ranks, HostBellOfRanks, testing::Values(1, 1'000'000));

}  // namespace
}  // namespace fasthorovod::ops
