#include "transport/remote_work.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>

#include "transport/flow.h"
#include "transport/lane_counters.h"
#include "transport/remote_seat.h"

namespace fasthorovod::transport {
namespace {

// The auxiliary's end, whose rank is played by the test.
class Remote : public ::testing::Test {
 protected:
  void say(const AuxAnswer& answer) {
    (void)answers_.write(answer);
    ASSERT_TRUE(work_.hear());
  }
  void assign(std::uint32_t flow, std::uint32_t id) {
    say({.kind = AuxAnswer::Kind::kChunk,
         .peer = 1,
         .id = id,
         .flow = flow,
         .header = encode(FrameHeader{})});
  }
  AuxRequest request() {
    const auto request = requests_.read();
    EXPECT_TRUE(request && *request) << "nothing was asked";
    return request && *request ? **request : AuxRequest{};
  }
  bool silent() { return !*requests_.read(); }
  bool rung() {
    std::uint64_t count = 0;
    return ::read(bell_.get(), &count, sizeof count) > 0;
  }
  std::unique_ptr<RemoteSeat> seat(std::uint32_t flow) {
    mailbox_->flows[flow].in_use.store(true);
    return std::make_unique<RemoteSeat>(1, flow, &mailbox_->flows[flow], work_);
  }

  const Arena arena_ = std::move(Arena::create(Arena::kPage)).value();
  const std::unique_ptr<AuxMailbox> mailbox_ = std::make_unique<AuxMailbox>();
  const FileDescriptor bell_{::eventfd(0, EFD_NONBLOCK)};
  RemoteWork work_{arena_, *mailbox_, FileDescriptor(::dup(bell_.get())),
                   [](std::span<std::byte> to, std::span<const std::byte> piece, std::uint16_t) {
                     for (std::size_t i = 0; i < piece.size(); ++i) {
                       to[i] =
                           std::byte(std::to_integer<int>(to[i]) + std::to_integer<int>(piece[i]));
                     }
                     return true;
                   }};
  RingReader<AuxRequest> requests_{mailbox_->requests};
  RingWriter<AuxAnswer> answers_{mailbox_->answers};
};

TEST_F(Remote, AddsInTheArenaByItself) {
  const FrameHeader header{.sequence = 1, .payload_bytes = 8};
  arena_.bytes()[16] = std::byte{40};
  EXPECT_EQ(work_.arrive(1, header)->kind, Arrival::Kind::kAsked);
  say({.kind = AuxAnswer::Kind::kAdd, .id = 1, .how = 3, .offset = 16, .bytes = 8});
  const auto arrival = work_.arrive(1, header);
  ASSERT_EQ(arrival->kind, Arrival::Kind::kAbsorb);
  const std::array<std::byte, 8> two{std::byte{2}};
  work_.absorb(arrival->ticket, 0, two);
  work_.received(arrival->ticket);
  EXPECT_EQ(arena_.bytes()[16], std::byte{42});
  EXPECT_EQ((*requests_.read())->kind, AuxRequest::Kind::kArrive);
  EXPECT_EQ((*requests_.read())->kind, AuxRequest::Kind::kReceived);
}

TEST_F(Remote, AsksForOneChunkOfAPeerAtATime) {
  const RemoteSeat only(1, kNoFlow, nullptr, work_);
  EXPECT_TRUE(work_.has_work(1));
  EXPECT_FALSE(work_.take(1));
  EXPECT_FALSE(work_.take(1));
  EXPECT_EQ((*requests_.read())->kind, AuxRequest::Kind::kWant);
  EXPECT_FALSE(*requests_.read());
  say({.kind = AuxAnswer::Kind::kNothing, .peer = 1});
  EXPECT_FALSE(work_.has_work(1)) << "so that the lane sleeps";
}

TEST_F(Remote, DoesNotBelieveAPlaceOutsideOfTheArena) {
  for (const std::uint64_t offset : {Arena::kPage - 7, ~std::uint64_t{0} - 3}) {
    (void)answers_.write({.kind = AuxAnswer::Kind::kChunk,
                          .peer = 1,
                          .id = 1,
                          .offset = offset,
                          .bytes = 8,
                          .header = encode(FrameHeader{})});
    EXPECT_EQ(work_.hear().error().code, core::ErrorCode::kProtocol);
  }
}

TEST_F(Remote, DoesNotBelieveAnAnswerNobodyAskedFor) {
  (void)answers_.write({.kind = AuxAnswer::Kind::kInto, .id = 1});
  EXPECT_EQ(work_.hear().error().code, core::ErrorCode::kProtocol);
}

TEST_F(Remote, GivesAChunkToTheFlowThatItWasAssignedTo) {
  const auto first = seat(0);
  const auto second = seat(1);
  EXPECT_FALSE(first->take(TakeOrder::kOldest));
  EXPECT_EQ(request().flow, 0U);
  EXPECT_FALSE(second->take(TakeOrder::kOldest));
  EXPECT_TRUE(silent()) << "one asks at a time";
  assign(0, 7);
  EXPECT_TRUE(second->leaves_next());
  EXPECT_FALSE(first->leaves_next());
  EXPECT_EQ(first->take(TakeOrder::kOldest)->ticket.operation, 7U);
}

// So a flow that rests ends when its peer has ended it.
TEST_F(Remote, HasNoWorkWhileAllFlowsRest) {
  const auto only = seat(0);
  EXPECT_TRUE(work_.has_work(1));
  mailbox_->flows[0].in_use.store(false);
  EXPECT_FALSE(work_.has_work(1));
  assign(0, 7);
  EXPECT_TRUE(work_.has_work(1));
}

TEST_F(Remote, LetsFlowsTakeTurns) {
  const auto first = seat(0);
  const auto second = seat(1);
  EXPECT_FALSE(first->take(TakeOrder::kOldest));
  assign(0, 7);
  EXPECT_TRUE(first->take(TakeOrder::kOldest));
  EXPECT_FALSE(first->take(TakeOrder::kOldest));
  EXPECT_EQ(request().flow, 0U);
  EXPECT_EQ(request().flow, 0U);
  EXPECT_FALSE(second->take(TakeOrder::kOldest));
  EXPECT_EQ(request().flow, 1U) << "in place of the first, which has had its turn";
  EXPECT_FALSE(first->take(TakeOrder::kOldest));
  EXPECT_TRUE(silent());
}

TEST_F(Remote, LetsAnotherFlowAskWhenOneIsToLeaveTheNextChunk) {
  const auto first = seat(0);
  const auto second = seat(1);
  EXPECT_FALSE(first->take(TakeOrder::kOldest));
  say({.kind = AuxAnswer::Kind::kNothing, .peer = 1});
  EXPECT_FALSE(work_.has_work(1));
  say({.kind = AuxAnswer::Kind::kLeave, .peer = 1, .flow = 0});
  EXPECT_TRUE(work_.has_work(1)) << "so that its lane asks";
  EXPECT_FALSE(second->leaves_next());
  EXPECT_FALSE(second->take(TakeOrder::kOldest));
  EXPECT_EQ(request().flow, 0U);
  EXPECT_EQ(request().flow, 1U);
}

TEST_F(Remote, AsksAgainForAFlowThatWasToLeaveAChunk) {
  const auto only = seat(0);
  EXPECT_FALSE(only->take(TakeOrder::kOldest));
  say({.kind = AuxAnswer::Kind::kLeave, .peer = 1, .flow = 0});
  while (only->leaves_next()) std::this_thread::yield();
  EXPECT_FALSE(only->take(TakeOrder::kOldest));
  EXPECT_EQ(request().kind, AuxRequest::Kind::kWant);
  EXPECT_EQ(request().kind, AuxRequest::Kind::kWant);
}

// Between the answer and the lane's next turn the rank may have chosen other flows, or the flow
// may have ended: the chunk has left the board, so somebody must carry it.
TEST_F(Remote, FindsAFlowForEachChunkThatWasAssigned) {
  const auto first = seat(0);
  auto second = seat(1);
  assign(0, 7);
  mailbox_->flows[0].in_use.store(false);
  EXPECT_TRUE(first->in_use());
  EXPECT_TRUE(first->take(TakeOrder::kOldest));
  EXPECT_FALSE(first->in_use());
  assign(1, 8);
  second.reset();
  EXPECT_EQ(request().kind, AuxRequest::Kind::kGiveUp);
  assign(1, 9);
  EXPECT_TRUE(first->in_use());
  EXPECT_EQ(first->take(TakeOrder::kOldest)->ticket.operation, 8U);
  EXPECT_EQ(first->take(TakeOrder::kOldest)->ticket.operation, 9U);
}

TEST_F(Remote, LetsAnotherFlowAskWhenTheOneThatAskedHasEnded) {
  auto first = seat(0);
  const auto second = seat(1);
  EXPECT_FALSE(first->take(TakeOrder::kOldest));
  say({.kind = AuxAnswer::Kind::kNothing, .peer = 1});
  first.reset();
  EXPECT_TRUE(work_.has_work(1));
  EXPECT_FALSE(second->take(TakeOrder::kOldest));
  EXPECT_EQ(request().kind, AuxRequest::Kind::kWant);
  EXPECT_EQ(request().kind, AuxRequest::Kind::kGiveUp);
  EXPECT_EQ(request().flow, 1U);
}

TEST_F(Remote, TellsWhatItsFlowsCarryBeforeWhatItSaysNext) {
  const auto only = seat(3);
  only->tell(5e6, core::TimePoint::max(), 77);
  EXPECT_EQ(mailbox_->flows[3].rate.load(), 5e6);
  EXPECT_EQ(mailbox_->flows[3].held.load(), 77U);
  const core::TimePoint now(std::chrono::seconds(9));
  only->look(now, 1000, true);
  EXPECT_TRUE(silent());
  EXPECT_FALSE(only->take(TakeOrder::kOldest));
  const AuxRequest look = request();
  EXPECT_EQ(look.kind, AuxRequest::Kind::kLook);
  EXPECT_EQ(look.flow, 3U);
  EXPECT_EQ(look.drained, 1000U);
  EXPECT_EQ(look.dry, 1U);
  EXPECT_EQ(look.at, now.time_since_epoch().count());
  EXPECT_EQ(request().kind, AuxRequest::Kind::kWant);
}

TEST_F(Remote, WakesTheRankOnceForAllThatWasSaid) {
  ASSERT_TRUE(requests_.arm());
  EXPECT_FALSE(work_.take(1));
  EXPECT_TRUE(work_.arrive(2, FrameHeader{.payload_bytes = 8}));
  EXPECT_FALSE(rung()) << "the lane has more to do";
  work_.flush();
  EXPECT_TRUE(rung());
  work_.flush();
  EXPECT_FALSE(rung());
}

TEST_F(Remote, AsksForTheNextChunkBeforeTheFirstHasLeft) {
  const auto only = seat(0);
  ASSERT_TRUE(requests_.arm());
  assign(0, 7);
  EXPECT_TRUE(only->take(TakeOrder::kOldest));
  only->ask_ahead();
  EXPECT_EQ(request().kind, AuxRequest::Kind::kWant);
  EXPECT_TRUE(rung());
  only->ask_ahead();
  EXPECT_FALSE(only->take(TakeOrder::kOldest));
  EXPECT_TRUE(silent()) << "its request stands";
  assign(0, 8);
  only->ask_ahead();
  EXPECT_TRUE(silent()) << "one ahead is enough";
  EXPECT_EQ(only->take(TakeOrder::kOldest)->ticket.operation, 8U);
}

// Which chunks it leaves to others would be decided too early.
TEST_F(Remote, DoesNotAskAheadForAFlowThatTheNetworkMayLimit) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const FileDescriptor other(sockets[1]);
  LaneCounters counters;
  Flow flow(1, FileDescriptor(sockets[0]), 64 << 10, work_, counters, seat(0));
  assign(0, 7);
  const auto chunk = flow.take();
  ASSERT_TRUE(chunk);
  flow.start(*chunk);
  flow.ask_ahead();
  EXPECT_TRUE(silent());
}

}  // namespace
}  // namespace fasthorovod::transport
