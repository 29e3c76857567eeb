#include "transport/flow.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "transport/flow_error.h"

namespace fasthorovod::transport {
namespace {

// Smaller chunks say nothing about goodput, and should cost nothing.
constexpr std::size_t kTelling = 32 << 10;

// Failure is ignored: the options exist on TCP only, and only the speed depends on them.
void set_tcp_option(int fd, int option, int value) {
  (void)::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

FlowEnd broken(const core::Error& error) { return {.clean = false, .error = error}; }

}  // namespace

Flow::Flow(int peer, FileDescriptor socket, int notsent_lowat, ChunkWork& work,
           LaneCounters& counters, std::unique_ptr<FlowSeat> seat)
    : peer_(peer),
      socket_(std::move(socket)),
      seat_(std::move(seat)),
      sender_(peer, socket_.get(), notsent_lowat, work, counters),
      receiver_(peer, socket_.get(), work, counters) {
  set_tcp_option(fd(), TCP_NODELAY, 1);
  set_tcp_option(fd(), TCP_NOTSENT_LOWAT, notsent_lowat);
}

bool Flow::ready() {
  // While epoll watches for room, its word is awaited; asking the socket each turn would cost two
  // calls.
  if (refused_ && (watched & EPOLLOUT) != 0) return false;
  refused_ = !sender_.ready();
  seat_->tell(sender_.rate().value(), sender_.rate().last_busy(), sender_.held());
  return !refused_;
}

void Flow::start(const OutgoingChunk& chunk) {
  if (!sender_.busy() && chunk.payload.size() >= kTelling) {
    seat_->look(core::Clock::now(), sender_.drained(), sender_.dry());
  }
  sender_.start(chunk);
}

// Only where nothing but the processors limits the flow. Elsewhere it is decided when it has room
// whether it takes another chunk or leaves that to a faster one.
void Flow::ask_ahead() {
  if (sender_.unlimited() && sender_.rate().value() == 0) seat_->ask_ahead();
}

void Flow::push() {
  sender_.push();
  // A flow that failed, and is kept for what it still receives, takes no other's place.
  if (sender_.error()) seat_->give_up();
}

void Flow::on_events(std::uint32_t events) {
  const std::uint32_t trouble = events & (EPOLLERR | EPOLLHUP);
  if (((events & EPOLLOUT) | trouble) != 0) {
    refused_ = false;
    if (sender_.busy() && !sender_.error()) push();
  }
  if (((events & EPOLLIN) | trouble) != 0 && receiver_.state() == FlowReceiver::State::kOpen) {
    receiver_.receive();
  }
}

std::uint32_t Flow::interest() const {
  std::uint32_t interest = 0;
  if (receiver_.state() == FlowReceiver::State::kOpen) interest |= EPOLLIN;
  if (!sender_.error() && (sender_.busy() || refused_)) interest |= EPOLLOUT;
  return interest;
}

void Flow::offer_once_more() {
  const bool parked = receiver_.state() == FlowReceiver::State::kParked;
  if (parked && sender_.error() && !receiver_.asked() && !offered_again_) receiver_.retry();
  offered_again_ = receiver_.state() == FlowReceiver::State::kParked && sender_.error().has_value();
}

std::optional<FlowEnd> Flow::ended(bool owes) const {
  switch (receiver_.state()) {
    case FlowReceiver::State::kFailed:
      return broken(receiver_.error());
    case FlowReceiver::State::kParked:
      if (sender_.error() && !receiver_.asked()) return broken(*sender_.error());
      return std::nullopt;
    case FlowReceiver::State::kEnded:
      if (sender_.error()) return broken(*sender_.error());
      if (sender_.busy() || refused_ || owes) return std::nullopt;
      return FlowEnd{
          .clean = true,
          .error = flow_error(peer_, core::ErrorCode::kPeerLost, "it closed the connection")};
    case FlowReceiver::State::kOpen:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace fasthorovod::transport
