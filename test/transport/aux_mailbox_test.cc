// A mailbox and the rank's end of it, against a partner that breaks the rules, and a slow one.
#include "transport/aux_mailbox.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/transport/fake_chunk_work.h"
#include "transport/aux_desk.h"

namespace fasthorovod::transport {
namespace {

using Mode = FakeChunkWork::Mode;
using Ring = SharedRing<std::uint64_t>;

TEST(SharedRing, BringsEverythingInOrderAndLosesNoWake) {
  const auto ring = std::make_unique<Ring>();
  constexpr std::uint64_t kCount = 200'000;
  std::atomic<std::uint32_t> rings_to_reader{0};
  std::atomic<std::uint32_t> rings_to_writer{0};
  std::thread writing([&] {
    RingWriter<std::uint64_t> writer(*ring);
    const auto tell = [&](bool wake) {
      if (!wake) return;
      ++rings_to_reader;
      rings_to_reader.notify_one();
    };
    for (std::uint64_t i = 0; i < kCount; ++i) tell(writer.write(i));
    while (ring->written.load() != kCount) {
      const std::uint32_t before = rings_to_writer.load();
      tell(writer.flush());
      if (ring->written.load() != kCount) rings_to_writer.wait(before);
    }
  });
  RingReader<std::uint64_t> reader(*ring);
  for (std::uint64_t next = 0; next < kCount;) {
    const std::uint32_t before = rings_to_reader.load();
    const auto record = reader.read();
    ASSERT_TRUE(record);
    if (*record) {
      ASSERT_EQ(**record, next++);
    } else if (reader.arm()) {
      rings_to_reader.wait(before);
    }
    if (reader.take_starved()) {
      ++rings_to_writer;
      rings_to_writer.notify_one();
    }
  }
  writing.join();
}

TEST(SharedRing, DoesNotBelieveACursorThatMakesNoSense) {
  const auto ring = std::make_unique<Ring>();
  RingReader<std::uint64_t> reader(*ring);
  ring->written.store(Ring::kSlots + 1);
  EXPECT_EQ(reader.read().error().code, core::ErrorCode::kProtocol);
}

// A desk whose auxiliary is played by the test.
class Desk : public ::testing::Test {
 protected:
  static constexpr std::size_t kStaging = 16 * Arena::kPage;

  void ask(const AuxRequest& request) { (void)requests_.write(request); }
  core::Result<bool> serve() { return desk_.serve(); }
  AuxAnswer answer() {
    const auto answer = answers_.read();
    EXPECT_TRUE(answer && *answer) << "no answer";
    return answer && *answer ? **answer : AuxAnswer{};
  }
  [[nodiscard]] bool silent() {
    const auto answer = answers_.read();
    return answer && !*answer;
  }
  void expect_nonsense(const AuxRequest& request, const std::string& words) {
    ask(request);
    const auto served = serve();
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code, core::ErrorCode::kProtocol);
    EXPECT_NE(served.error().message.find(words), std::string::npos) << served.error().message;
  }
  static AuxRequest arrival(std::uint32_t id, std::uint32_t transfer, std::uint64_t bytes,
                            Mode mode) {
    return {.kind = AuxRequest::Kind::kArrive,
            .peer = 1,
            .id = id,
            .header = encode({.sequence = 1,
                              .transfer = transfer,
                              .hop = static_cast<std::uint32_t>(mode),
                              .payload_bytes = bytes})};
  }

  const Arena arena_ = std::move(Arena::create(kStaging)).value();
  const std::unique_ptr<AuxMailbox> mailbox_ = std::make_unique<AuxMailbox>();
  const FileDescriptor bell_{::eventfd(0, EFD_NONBLOCK)};
  FakeChunkWork work_;
  AuxDesk desk_{
      {arena_, *mailbox_, arena_.bytes()}, FileDescriptor(::dup(bell_.get())), work_, nullptr};
  RingWriter<AuxRequest> requests_{mailbox_->requests};
  RingReader<AuxAnswer> answers_{mailbox_->answers};
};

TEST_F(Desk, StagesAChunkOfPrivateMemoryAndFreesItsPlaceOnceItLeft) {
  work_.queue(1, 1, 0, 5 * Arena::kPage, Mode::kInto);
  work_.queue(2, 1, 1, 5 * Arena::kPage, Mode::kInto);
  ask({.kind = AuxRequest::Kind::kWant, .peer = 1});
  ask({.kind = AuxRequest::Kind::kWant, .peer = 2});
  ASSERT_TRUE(serve());
  const AuxAnswer first = answer();
  ASSERT_EQ(first.kind, AuxAnswer::Kind::kChunk);
  EXPECT_EQ(first.peer, 1);
  const auto bytes = arena_.bytes().subspan(first.offset, first.bytes);
  EXPECT_TRUE(std::ranges::equal(bytes, pattern(1, 0, 5 * Arena::kPage)));
  EXPECT_TRUE(silent()) << "half of the staging holds one such chunk";
  ask({.kind = AuxRequest::Kind::kSent, .id = first.id});
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().peer, 2);
  EXPECT_EQ(work_.sent_count(), 1U);
}

TEST_F(Desk, AdmitsWhatComesAlthoughAllStagingForWhatLeavesIsTaken) {
  work_.queue(1, 1, 0, 8 * Arena::kPage, Mode::kInto);
  ask({.kind = AuxRequest::Kind::kWant, .peer = 1});
  ask(arrival(1, 7, 8 * Arena::kPage, Mode::kAbsorb));
  ask(arrival(2, 8, 10, Mode::kInto));
  ASSERT_TRUE(serve());
  const AuxAnswer place = answer();
  EXPECT_EQ(place.kind, AuxAnswer::Kind::kInto);
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kChunk);
  EXPECT_TRUE(silent()) << "the second arrival waits for the first";
  std::ranges::copy(pattern(1, 7, place.bytes), arena_.bytes().data() + place.offset);
  ask({.kind = AuxRequest::Kind::kReceived, .id = 1});
  ASSERT_TRUE(serve());
  EXPECT_EQ(work_.received_count(), 1U);
  EXPECT_EQ(answer().id, 2U);
}

TEST_F(Desk, TellsOnceThatThereIsNothingAndAnswersLater) {
  ask({.kind = AuxRequest::Kind::kWant, .peer = 1});
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kNothing);
  ASSERT_TRUE(serve());
  EXPECT_TRUE(silent());
  work_.queue(1, 1, 0, 10, Mode::kInto);
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kChunk);
}

TEST_F(Desk, WakesTheAuxiliaryOnceForAllAnswers) {
  ASSERT_TRUE(answers_.arm());
  ask({.kind = AuxRequest::Kind::kWant, .peer = 1});
  ask(arrival(1, 7, 100, Mode::kInto));
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kInto);
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kNothing);
  std::uint64_t rings = 0;
  EXPECT_GT(::read(bell_.get(), &rings, sizeof rings), 0);
  EXPECT_EQ(rings, 1U);
}

TEST_F(Desk, ParksWhatMayNotStartAndAsksAgain) {
  work_.park_from(1);
  ask(arrival(1, 7, 100, Mode::kInto));
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kParked);
  ASSERT_TRUE(serve());
  EXPECT_TRUE(silent());
  work_.park_from(2);
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kInto);
}

// An operation that starts while the desk is busy lets an arrival in and a chunk out at once.
TEST_F(Desk, AdmitsWhatWasParkedBeforeItAssignsAChunk) {
  work_.park_from(1);
  ask(arrival(1, 7, 100, Mode::kInto));
  ask({.kind = AuxRequest::Kind::kWant, .peer = 1});
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kParked);
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kNothing);
  work_.queue(1, 1, 0, 10, Mode::kInto);
  work_.before_take([this] { work_.park_from(2); });
  ASSERT_TRUE(serve());
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kInto);
  EXPECT_EQ(answer().kind, AuxAnswer::Kind::kChunk);
}

TEST_F(Desk, CallsAnEndUncleanWhenAnAssignedChunkIsLostWithIt) {
  work_.queue(1, 1, 0, 10, Mode::kInto);
  ask({.kind = AuxRequest::Kind::kWant, .peer = 1});
  desk_.add_flow(1);
  ASSERT_TRUE(serve());
  ask({.kind = AuxRequest::Kind::kFlowEnded, .peer = 1, .clean = 1});
  ASSERT_TRUE(serve());
  ASSERT_EQ(work_.ended().size(), 1U);
  EXPECT_FALSE(work_.ended()[0].end.clean);
}

TEST_F(Desk, RefusesWhatNoStagingCanHold) {
  ask(arrival(1, 7, std::uint64_t{1} << 33, Mode::kCount));
  ASSERT_TRUE(serve());
  const AuxAnswer refusal = answer();
  EXPECT_EQ(refusal.kind, AuxAnswer::Kind::kRefused);
  EXPECT_NE(refusal.error.unpack().message.find("8589934592"), std::string::npos);
}

TEST_F(Desk, NamesWhatAnAuxiliaryMayNotAsk) {
  expect_nonsense({.kind = AuxRequest::Kind{99}}, "unknown");
  expect_nonsense({.kind = AuxRequest::Kind::kSent, .id = 5}, "not assigned");
  expect_nonsense({.kind = AuxRequest::Kind::kReceived, .id = 5}, "not admitted");
  AuxRequest broken = arrival(3, 0, 10, Mode::kInto);
  broken.header[9] ^= std::byte{1};
  expect_nonsense(broken, "");
  ask(arrival(9, 0, 10, Mode::kInto));
  expect_nonsense(arrival(9, 1, 10, Mode::kInto), "twice");
}

}  // namespace
}  // namespace fasthorovod::transport
