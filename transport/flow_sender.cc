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

iovec part_of(std::span<const std::byte> bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

FlowSender::FlowSender(int peer, int fd, int notsent_lowat, ChunkWork& work, LaneCounters& counters)
    : peer_(peer), fd_(fd), notsent_lowat_(notsent_lowat), work_(work), counters_(counters) {}

bool FlowSender::ready() {
  held_ = queued(SIOCOUTQ);
  rate_.observe(core::Clock::now(), total_, held_);
  unsent_ = queued(SIOCOUTQNSD);
  if (unsent_ > static_cast<std::uint64_t>(notsent_lowat_) / 2) return false;
  // The kernel's own idea of writable also knows the send buffer, and is the one that EPOLLOUT goes
  // by.
  pollfd writable{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&writable, 1, 0) > 0;
}

// Sockets of other kinds than TCP count in their own way, or not at all.
std::uint64_t FlowSender::queued(unsigned long which) const {
  int bytes = 0;
  return ::ioctl(fd_, which, &bytes) == 0 && bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

void FlowSender::start(const OutgoingChunk& chunk) {
  chunk_ = chunk;
  chunk_->header.payload_bytes = chunk.payload.size();
  header_ = encode(chunk_->header);
  written_ = 0;
  rate_.give(core::Clock::now(), total_);
  push();
}

void FlowSender::push() {
  const std::size_t total = kFrameHeaderBytes + chunk_->payload.size();
  // What is left over, because the socket is full or the turn is, waits for EPOLLOUT.
  written_ += write_some(std::min(kTurnBytes, total - written_));
  if (written_ == total) finish();
}

std::size_t FlowSender::write_some(std::size_t most) {
  const std::size_t header_done = std::min(written_, kFrameHeaderBytes);
  const auto header = std::span<const std::byte>(header_).subspan(header_done);
  const auto payload = chunk_->payload.subspan(written_ - header_done);
  std::array parts{part_of(header),
                   part_of(payload.first(std::min(payload.size(), most - header.size())))};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (true) {
    const ssize_t count = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      counters_.bytes_sent.add(static_cast<std::uint64_t>(count));
      total_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      error_ = flow_failed(peer_, "sending", errno);
      ::shutdown(fd_, SHUT_RDWR);  // so that reading comes to its end, whatever the cause was
    }
    return 0;
  }
}

void FlowSender::finish() {
  const ChunkTicket ticket = chunk_->ticket;
  chunk_.reset();
  counters_.chunks_sent.add(1);
  work_.sent(ticket);
}

}  // namespace fasthorovod::transport
