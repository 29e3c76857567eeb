#include "transport/flow_sender.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/flow_error.h"

namespace fasthorovod::transport {
namespace {

// One flow writes at most this much before the others get their turn. Far below the 2 GiB of a
// sendmsg.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20;
// Frames up to so many bytes in all wait for the next one, to leave together.
constexpr std::size_t kLittle = 4 << 10;
constexpr std::size_t kMostFrames = 8;
// A socket that holds less has room for a chunk.
constexpr std::uint64_t kUnasked = 32 << 10;
// What a flow that drains at once is given together.
constexpr std::size_t kBatch = 192 << 10;
// Up to how much is joined to one chunk for it. An auxiliary of the peer may have to stage it.
constexpr std::uint64_t kJoined = 512 << 10;

iovec part_of(std::span<const std::byte> bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

FlowSender::FlowSender(int peer, int fd, int notsent_lowat, ChunkWork& work, LaneCounters& counters,
                       FlowSpeed speed)
    : peer_(peer),
      fd_(fd),
      notsent_lowat_(notsent_lowat),
      work_(work),
      counters_(counters),
      speed_(speed) {}

bool FlowSender::ready() {
  if (total_ - empty_at_ < kUnasked) {
    rate_.rest();
    dry_ = true;
    return true;
  }
  look();
  dry_ = held_ < kUnasked;
  if (dry_) return true;
  const auto most = static_cast<std::uint64_t>(notsent_lowat_) / 2;
  if (held_ > most && queued(SIOCOUTQNSD) > most) return false;
  // The kernel's own idea of writable also knows the send buffer, and is the one that EPOLLOUT goes
  // by.
  pollfd writable{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&writable, 1, 0) > 0;
}

void FlowSender::look() {
  const core::TimePoint now = core::Clock::now();
  held_ = queued(SIOCOUTQ);
  rate_.observe(now, total_, held_);
  if (held_ == 0) empty_at_ = total_;
  speed_.observe(now, total_, held_);
}

bool FlowSender::drains_at_once() {
  if (!speed_.unlimited() || busy() || error_) return false;
  if (total_ - empty_at_ >= kUnasked) look();
  return speed_.unlimited();
}

// Sockets of other kinds than TCP count in their own way, or not at all.
std::uint64_t FlowSender::queued(unsigned long which) const {
  int bytes = 0;
  return ::ioctl(fd_, which, &bytes) == 0 && bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

void FlowSender::start(const OutgoingChunk& chunk) {
  Frame& frame = in_hand_.emplace_back(Frame{chunk, {}});
  frame.chunk.header.payload_bytes = chunk.payload.size();
  frame.header = encode(frame.chunk.header);
  bytes_ += frame.bytes();
}

std::uint64_t FlowSender::joins_up_to() const { return speed_.unlimited() ? kJoined : 0; }

bool FlowSender::takes_more() const {
  return bytes_ <= (speed_.unlimited() ? kBatch : kLittle) && written_ == 0 &&
         in_hand_.size() < kMostFrames;
}

void FlowSender::push() {
  if (written_ == 0) rate_.give(core::Clock::now(), total_);
  // What is left over, because the socket is full or the turn is, waits for EPOLLOUT.
  account(write_some(kTurnBytes));
}

// Returns how many bytes the socket took.
std::size_t FlowSender::write_some(std::size_t most) {
  std::array<iovec, 2 * kMostFrames> parts{};
  msghdr message{};
  message.msg_iov = parts.data();
  std::size_t skip = written_;
  const auto add = [&](std::span<const std::byte> bytes) {
    const std::size_t done = std::min(skip, bytes.size());
    skip -= done;
    const auto rest = bytes.subspan(done).first(std::min(bytes.size() - done, most));
    most -= rest.size();
    if (!rest.empty()) parts[message.msg_iovlen++] = part_of(rest);
  };
  for (const Frame& frame : in_hand_) {
    add(frame.header);
    add(frame.chunk.payload);
  }
  while (true) {
    const ssize_t count = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      error_ = flow_failed(peer_, "sending", errno);
      ::shutdown(fd_, SHUT_RDWR);  // so that reading comes to its end, whatever the cause was
    }
    return 0;
  }
}

// Lets go of the frames that have left.
void FlowSender::account(std::size_t count) {
  counters_.bytes_sent.add(count);
  total_ += count;
  written_ += count;
  std::size_t gone = 0;
  std::size_t left = written_;
  while (gone < in_hand_.size() && left >= in_hand_[gone].bytes()) left -= in_hand_[gone++].bytes();
  std::array<ChunkTicket, kMostFrames> tickets{};
  for (std::size_t i = 0; i < gone; ++i) tickets[i] = in_hand_[i].chunk.ticket;
  in_hand_.erase(in_hand_.begin(), in_hand_.begin() + static_cast<std::ptrdiff_t>(gone));
  bytes_ -= written_ - left;
  written_ = left;
  counters_.chunks_sent.add(gone);
  for (const ChunkTicket& ticket : std::span(tickets).first(gone)) work_.sent(ticket);
}

}  // namespace fasthorovod::transport
