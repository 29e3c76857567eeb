#include "transport/flow_receiver.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/flow_error.h"

namespace fasthorovod::transport {
namespace {

// One flow reads at most this much before the others get their turn.
constexpr std::size_t kTurnBytes = 512 << 10;
constexpr std::size_t kScratchBytes = 128 << 10;
// Read behind a header that was waited for: what small frames have. More would only be copied.
constexpr std::size_t kAheadBytes = 8 << 10;

}  // namespace

struct FlowReceiver::Scratch {
  alignas(64) std::array<std::byte, kScratchBytes> bytes;
};

struct FlowReceiver::Ahead {
  std::array<std::byte, kAheadBytes> bytes;
};

FlowReceiver::FlowReceiver(int peer, int fd, ChunkWork& work, LaneCounters& counters)
    : peer_(peer),
      fd_(fd),
      work_(work),
      counters_(counters),
      ahead_bytes_(std::make_unique_for_overwrite<Ahead>()) {}

FlowReceiver::~FlowReceiver() = default;

void FlowReceiver::receive() {
  std::size_t room = kTurnBytes;
  bool more = true;
  while (state_ == State::kOpen && room > 0 && more) {
    more = read_on(room);
    use_ahead();
  }
}

// False when the socket is empty, which epoll tells when it changes.
bool FlowReceiver::read_on(std::size_t& room) {
  const auto payload = payload_space(room);
  // The next header may follow only once the rest of this payload fits.
  auto header = std::span(header_bytes_).subspan(header_read_);
  if (payload.size() < payload_left_) header = {};
  const auto ahead = payload_left_ == 0 ? std::span(ahead_bytes_->bytes) : std::span<std::byte>();
  const std::size_t count = read_some(payload, header, ahead);
  if (count == 0) return false;
  const std::size_t of_payload = std::min(count, payload.size());
  const std::size_t of_header = std::min(count - of_payload, header.size());
  ahead_ = ahead.first(count - of_payload - of_header);
  take(of_payload, of_header);
  room -= std::min(room, count);
  return count == payload.size() + header.size() + ahead.size();
}

// Makes of what was read ahead what it would have been.
void FlowReceiver::use_ahead() {
  while (state_ == State::kOpen && !ahead_.empty()) {
    const bool in_header = phase_ == Phase::kHeader;
    const auto space =
        in_header ? std::span(header_bytes_).subspan(header_read_) : payload_space(payload_left_);
    const std::size_t count = std::min(space.size(), ahead_.size());
    std::memcpy(space.data(), ahead_.data(), count);
    ahead_ = ahead_.subspan(count);
    take(in_header ? 0 : count, in_header ? count : 0);
  }
}

void FlowReceiver::take(std::size_t of_payload, std::size_t of_header) {
  header_read_ += of_header;
  if (phase_ != Phase::kHeader) take_payload(of_payload);
  if (header_read_ == kFrameHeaderBytes) open_frame();
}

void FlowReceiver::retry() {
  offer();
  use_ahead();
}

// Returns 0 when there was nothing to read or the direction ended.
std::size_t FlowReceiver::read_some(std::span<std::byte> payload, std::span<std::byte> header,
                                    std::span<std::byte> ahead) {
  std::array parts{iovec{.iov_base = payload.data(), .iov_len = payload.size()},
                   iovec{.iov_base = header.data(), .iov_len = header.size()},
                   iovec{.iov_base = ahead.data(), .iov_len = ahead.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (true) {
    const ssize_t count = ::recvmsg(fd_, &message, MSG_DONTWAIT);
    if (count > 0) {
      counters_.bytes_received.add(static_cast<std::uint64_t>(count));
      return static_cast<std::size_t>(count);
    }
    if (count == 0) {
      end_of_stream();
    } else if (errno == EINTR) {
      continue;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
      fail(flow_failed(peer_, "receiving", errno));
    }
    return 0;
  }
}

// Where the next bytes of the payload go; empty between frames.
std::span<std::byte> FlowReceiver::payload_space(std::size_t most) {
  switch (phase_) {
    case Phase::kHeader:
      return {};
    case Phase::kInto:
      return arrival_.into.last(payload_left_).first(std::min(payload_left_, most));
    case Phase::kAbsorb: {
      const auto free = std::span(scratch_->bytes).subspan(carried_);
      return free.first(std::min({free.size(), payload_left_, most}));
    }
  }
  return {};
}

void FlowReceiver::take_payload(std::size_t count) {
  payload_left_ -= count;
  if (phase_ == Phase::kAbsorb) absorb(carried_ + count);
  if (payload_left_ == 0) finish_chunk();
}

// Hands over what the scratch holds, but keeps an incomplete granule for the bytes that follow.
void FlowReceiver::absorb(std::size_t available) {
  carried_ = payload_left_ == 0 ? 0 : available % kGranule;
  const std::size_t ready = available - carried_;
  if (ready == 0) return;
  work_.absorb(arrival_.ticket, absorbed_, std::span(scratch_->bytes).first(ready));
  absorbed_ += ready;
  std::memmove(scratch_->bytes.data(), scratch_->bytes.data() + ready, carried_);
}

void FlowReceiver::open_frame() {
  header_read_ = 0;
  auto header = decode(header_bytes_);
  if (!header) {
    fail(flow_error(peer_, header.error().code, header.error().message));
    return;
  }
  header_ = *header;
  offer();
}

void FlowReceiver::offer() {
  auto arrival = work_.arrive(peer_, header_);
  if (!arrival) {
    auto error = std::move(arrival).error();
    if (error.culprit < 0) error.culprit = peer_;
    fail(std::move(error));
  } else if (arrival->kind == Arrival::Kind::kPark || arrival->kind == Arrival::Kind::kAsked) {
    state_ = State::kParked;
    arrival_ = *arrival;
  } else {
    state_ = State::kOpen;
    begin(*arrival);
  }
}

void FlowReceiver::begin(const Arrival& arrival) {
  arrival_ = arrival;
  payload_left_ = header_.payload_bytes;
  absorbed_ = 0;
  carried_ = 0;
  if (arrival.kind == Arrival::Kind::kAbsorb) {
    phase_ = Phase::kAbsorb;
    if (!scratch_) scratch_ = std::make_unique_for_overwrite<Scratch>();
  } else if (arrival.into.size() == payload_left_) {
    phase_ = Phase::kInto;
  } else {
    fail(flow_error(peer_, core::ErrorCode::kInternal,
                    fmt::format("a chunk of {} bytes was given a place of {}", payload_left_,
                                arrival.into.size())));
    return;
  }
  if (payload_left_ == 0) finish_chunk();
}

void FlowReceiver::finish_chunk() {
  phase_ = Phase::kHeader;
  counters_.chunks_received.add(1);
  work_.received(arrival_.ticket);
}

void FlowReceiver::end_of_stream() {
  if (phase_ == Phase::kHeader && header_read_ == 0) {
    state_ = State::kEnded;
  } else if (phase_ == Phase::kHeader) {
    fail(flow_error(peer_, core::ErrorCode::kPeerLost, "it closed the connection inside a header"));
  } else {
    fail(flow_error(peer_, core::ErrorCode::kPeerLost,
                    fmt::format("it closed the connection {} bytes before the end of a chunk of {}",
                                payload_left_, header_.payload_bytes)));
  }
}

void FlowReceiver::fail(core::Error error) {
  error_ = std::move(error);
  state_ = State::kFailed;
}

}  // namespace fasthorovod::transport
