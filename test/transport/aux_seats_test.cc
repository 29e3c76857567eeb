// Flows of auxiliaries, played by the test, that share a rank's RateBoard: which are in use, and
// which leave chunks to those of another auxiliary.
#include "transport/aux_seats.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>

#include "test/transport/fake_chunk_work.h"
#include "transport/aux_desk.h"

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;
using Kind = AuxAnswer::Kind;
using Mode = FakeChunkWork::Mode;

constexpr int kPeer = 1;
constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr double kFast = 30e6;  // bytes a second
constexpr double kSlow = 7.5e6;

/// An auxiliary and its desk.
class Played final {
 public:
  Played(FakeChunkWork& work, std::shared_ptr<RateBoard> rates)
      : bell_(::eventfd(0, EFD_NONBLOCK)),
        desk_({arena_, *mailbox_, arena_.bytes()}, FileDescriptor(::dup(bell_.get())), work,
              std::move(rates)) {}

  std::uint32_t add_flow() { return desk_.add_flow(kPeer); }
  SharedFlow& flow(std::uint32_t flow) { return mailbox_->flows.at(flow); }
  /// Bytes of the flow are on their way.
  void set_rate(std::uint32_t number, double rate) {
    flow(number).rate.store(rate);
    flow(number).last_busy.store(core::TimePoint::max().time_since_epoch().count());
  }
  core::Status say(const AuxRequest& request) {
    (void)requests_.write(request);
    const auto served = desk_.serve();
    return served ? core::Status() : core::Status(served.error());
  }
  /// The answer to a flow that could take a chunk.
  std::optional<AuxAnswer> want(std::uint32_t flow) {
    EXPECT_TRUE(say({.kind = AuxRequest::Kind::kWant, .peer = kPeer, .flow = flow}));
    return answer();
  }
  std::optional<AuxAnswer> answer() {
    auto answer = answers_.read();
    EXPECT_TRUE(answer);
    return answer ? *answer : std::nullopt;
  }
  bool rung() {
    std::uint64_t count = 0;
    return ::read(bell_.get(), &count, sizeof count) > 0;
  }
  AuxDesk& desk() { return desk_; }

 private:
  const Arena arena_ = std::move(Arena::create(16 * kChunk)).value();
  const std::unique_ptr<AuxMailbox> mailbox_ = std::make_unique<AuxMailbox>();
  const FileDescriptor bell_;
  AuxDesk desk_;
  RingWriter<AuxRequest> requests_{mailbox_->requests};
  RingReader<AuxAnswer> answers_{mailbox_->answers};
};

class TwoAuxiliaries : public ::testing::Test {
 protected:
  void queue(int chunks) {
    for (int i = 0; i < chunks; ++i) work_.queue(kPeer, 1, next_++, kChunk, Mode::kInto);
  }
  /// `first`: as of RateBoard.
  void set_up(std::optional<int> first = std::nullopt) {
    rates_ = std::make_shared<RateBoard>(first);
    a_.emplace(work_, rates_);
    b_.emplace(work_, rates_);
  }
  /// A flow of each.
  void add_flows(double rate_a, double rate_b) {
    ASSERT_EQ(a_->add_flow(), 0U);
    ASSERT_EQ(b_->add_flow(), 0U);
    a_->set_rate(0, rate_a);
    b_->set_rate(0, rate_b);
  }
  [[nodiscard]] PeerReport report() const { return rates_->reports().front(); }

  FakeChunkWork work_;
  std::uint32_t next_ = 0;
  std::shared_ptr<RateBoard> rates_;
  std::optional<Played> a_;
  std::optional<Played> b_;
};

TEST_F(TwoAuxiliaries, LeaveTheLastChunkToTheFasterFlowOfTheOther) {
  set_up();
  add_flows(kFast, kSlow);
  queue(2);
  ASSERT_EQ(a_->want(0)->kind, Kind::kChunk);
  const auto left = b_->want(0);
  EXPECT_EQ(left->kind, Kind::kLeave);
  EXPECT_EQ(left->flow, 0U);
  EXPECT_EQ(left->peer, kPeer);
  const auto granted = a_->want(0);
  EXPECT_EQ(granted->kind, Kind::kChunk);
  EXPECT_EQ(granted->flow, 0U);
  EXPECT_EQ(b_->want(0)->kind, Kind::kNothing) << "so that its lane sleeps";
}

TEST_F(TwoAuxiliaries, ShareWhatIsFarFromItsEnd) {
  set_up();
  add_flows(kFast, kSlow);
  queue(12);
  ASSERT_EQ(a_->want(0)->kind, Kind::kChunk);
  EXPECT_EQ(b_->want(0)->kind, Kind::kChunk);
}

TEST_F(TwoAuxiliaries, CountWhatTheSlowFlowHolds) {
  set_up();
  add_flows(kFast, kSlow);
  queue(8);
  ASSERT_EQ(a_->want(0)->kind, Kind::kChunk);
  b_->flow(0).held.store(2 * kChunk);
  EXPECT_EQ(b_->want(0)->kind, Kind::kLeave);
  b_->flow(0).held.store(0);
  EXPECT_EQ(b_->want(0)->kind, Kind::kChunk);
}

// A request that was told "nothing just now" stands until there is something.
TEST_F(TwoAuxiliaries, LeaveAlsoWhatTurnsUpLater) {
  set_up();
  add_flows(kFast, kSlow);
  ASSERT_EQ(a_->want(0)->kind, Kind::kNothing);
  ASSERT_EQ(b_->want(0)->kind, Kind::kNothing);
  queue(2);
  ASSERT_TRUE(a_->desk().serve());
  EXPECT_EQ(a_->answer()->kind, Kind::kChunk);
  ASSERT_TRUE(b_->desk().serve());
  EXPECT_EQ(b_->answer()->kind, Kind::kLeave);
}

TEST_F(TwoAuxiliaries, LeaveNothingWhileNoRateIsKnown) {
  set_up();
  add_flows(0, 0);
  queue(1);
  EXPECT_EQ(b_->want(0)->kind, Kind::kChunk);
}

TEST_F(TwoAuxiliaries, LeaveNothingToAFlowThatEnded) {
  set_up();
  add_flows(kFast, kSlow);
  queue(3);
  ASSERT_EQ(a_->want(0)->kind, Kind::kChunk);
  ASSERT_EQ(b_->want(0)->kind, Kind::kLeave);
  ASSERT_TRUE(a_->say({.kind = AuxRequest::Kind::kGiveUp, .peer = kPeer, .flow = 0}));
  EXPECT_EQ(b_->want(0)->kind, Kind::kChunk);
}

TEST_F(TwoAuxiliaries, LeaveNothingToOneThatIsClosed) {
  set_up();
  add_flows(kFast, kSlow);
  queue(3);
  ASSERT_EQ(a_->want(0)->kind, Kind::kChunk);
  a_->desk().close();
  EXPECT_EQ(report().flows.size(), 1U);
  EXPECT_EQ(b_->want(0)->kind, Kind::kChunk);
}

TEST_F(TwoAuxiliaries, UseTheFirstFlowsOfAll) {
  set_up(2);
  for (int i = 0; i < 2; ++i) {
    a_->add_flow();
    b_->add_flow();
  }
  EXPECT_TRUE(a_->flow(0).in_use.load());
  EXPECT_TRUE(b_->flow(0).in_use.load());
  EXPECT_FALSE(a_->flow(1).in_use.load());
  EXPECT_FALSE(b_->flow(1).in_use.load());
  queue(2);
  EXPECT_EQ(b_->want(1)->kind, Kind::kLeave) << "it asked before it heard that it is not in use";
  EXPECT_EQ(b_->want(0)->kind, Kind::kChunk);
}

TEST_F(TwoAuxiliaries, AreWokenByAFlowThatComesIntoUse) {
  set_up(1);
  a_->add_flow();
  b_->add_flow();
  (void)b_->rung();
  EXPECT_FALSE(b_->flow(0).in_use.load());
  ASSERT_TRUE(a_->say({.kind = AuxRequest::Kind::kGiveUp, .peer = kPeer, .flow = 0}));
  EXPECT_TRUE(b_->flow(0).in_use.load());
  EXPECT_TRUE(b_->rung()) << "its lane may sleep without having asked for anything";
}

// Each flow carries as much as its share of the network lets it: more of them carry more.
TEST_F(TwoAuxiliaries, FindTogetherHowManyFlowsToUse) {
  set_up(2);
  for (int i = 0; i < 4; ++i) {
    a_->add_flow();
    b_->add_flow();
  }
  auto now = core::Clock::now() - 60s;  // they tell of the past
  std::uint64_t drained = 0;
  for (int turn = 0; turn < 3000; ++turn, now += 5ms, drained += kChunk / 2) {
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      for (Played* one : {&*a_, &*b_}) {
        if (!one->flow(flow).in_use.load()) continue;
        ASSERT_TRUE(one->say({.kind = AuxRequest::Kind::kLook,
                              .flow = flow,
                              .drained = drained,
                              .at = now.time_since_epoch().count()}));
      }
    }
  }
  EXPECT_TRUE(b_->flow(3).in_use.load()) << "all eight carry most";
  EXPECT_GT(report().tried.size(), 2U);
  EXPECT_GT(report().goodput, 0);
}

TEST_F(TwoAuxiliaries, UseWithoutMoreAdoTheFlowsThatTheTableHasNoRoomFor) {
  set_up(1);
  for (std::uint32_t flow = 0; flow < kSharedFlows; ++flow) ASSERT_EQ(a_->add_flow(), flow);
  EXPECT_EQ(a_->add_flow(), kNoFlow);
  EXPECT_EQ(report().flows.size(), kSharedFlows);
  queue(1);
  EXPECT_EQ(a_->want(kNoFlow)->kind, Kind::kChunk);
}

TEST_F(TwoAuxiliaries, MayNotSpeakOfFlowsThatTheyDoNotHave) {
  set_up();
  add_flows(kFast, kSlow);
  const core::Status said = a_->say({.kind = AuxRequest::Kind::kWant, .peer = kPeer, .flow = 1});
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, core::ErrorCode::kProtocol);
}

TEST_F(TwoAuxiliaries, MayTellNonsenseAboutTheirFlows) {
  set_up(1);
  add_flows(-1, std::numeric_limits<double>::quiet_NaN());
  a_->flow(0).last_busy.store(std::numeric_limits<std::int64_t>::min());
  a_->flow(0).held.store(~std::uint64_t{0});
  for (const std::int64_t at : {std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max(), std::int64_t{0}}) {
    ASSERT_TRUE(a_->say(
        {.kind = AuxRequest::Kind::kLook, .flow = 0, .drained = ~std::uint64_t{0}, .at = at}));
  }
  queue(1);
  EXPECT_EQ(a_->want(0)->kind, Kind::kChunk);
}

}  // namespace
}  // namespace fasthorovod::transport
