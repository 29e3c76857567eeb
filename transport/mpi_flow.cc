#include "transport/mpi_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/flow_error.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

// Enough that MPI always has one to carry while another is copied.
constexpr std::size_t kBlocksOnTheirWay = 4;

constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

}  // namespace

bool MpiFlow::send() {
  refused_ = false;
  bool moved = false;
  if (error_ || reported_) return false;
  if (peer_ended_) {
    drop_work();
    return false;
  }
  while (!error_ && outgoing_.size() < kBlocksOnTheirWay && send_block()) moved = true;
  return moved;
}

// The next block of the chunk in hand, or of a new one.
bool MpiFlow::send_block() {
  MpiBlockKind kind = MpiBlockKind::kRest;
  if (!chunk_) {
    if (!home_.work.has_work(peer_)) return false;
    chunk_ = home_.work.take(peer_);
    if (!chunk_) {
      refused_ = home_.work.has_work(peer_);
      return false;
    }
    chunk_->header.payload_bytes = chunk_->payload.size();
    copied_ = 0;
    kind = MpiBlockKind::kFrame;
  }
  auto block = home_.pool.get();
  block->head() = {.mark = home_.mark, .kind = kind};
  if (kind == MpiBlockKind::kFrame) block->head().header = encode(chunk_->header);
  const auto part = chunk_->payload.subspan(
      copied_, std::min(MpiBlock::kPayload, chunk_->payload.size() - copied_));
  if (!part.empty()) std::memcpy(block->payload().data(), part.data(), part.size());
  copied_ += part.size();
  start_send(std::move(block), sizeof(MpiBlockHead) + part.size());
  if (error_) return false;
  if (copied_ == chunk_->payload.size()) {
    const ChunkTicket ticket = chunk_->ticket;
    chunk_.reset();
    home_.counters.chunks_sent.add(1);
    home_.work.sent(ticket);
  }
  return true;
}

// The peer has stopped, and reads nothing more.
void MpiFlow::drop_work() {
  while (true) {
    if (!chunk_ && home_.work.has_work(peer_)) chunk_ = home_.work.take(peer_);
    if (!chunk_) break;
    const ChunkTicket ticket = chunk_->ticket;
    chunk_.reset();
    home_.work.sent(ticket);
  }
  refused_ = home_.work.has_work(peer_);
}

void MpiFlow::start_send(std::unique_ptr<MpiBlock> block, std::size_t bytes) {
  auto transfer = home_.mpi.send_block(peer_, block->bytes(bytes));
  if (!transfer) {
    home_.pool.put(std::move(block));
    return fail(flow_error(peer_, ErrorCode::kPeerLost, transfer.error().message));
  }
  home_.counters.bytes_sent.add(bytes);
  outgoing_.push_back({std::move(block), bytes, *std::move(transfer)});
}

void MpiFlow::say_end(MpiBlockKind kind) {
  auto block = home_.pool.get();
  block->head() = {.mark = home_.mark, .kind = kind};
  auto transfer = home_.mpi.send_block(peer_, block->bytes(sizeof(MpiBlockHead)));
  // A rank that can not be told sees this one go by its control connection.
  if (transfer) {
    outgoing_.push_back({std::move(block), sizeof(MpiBlockHead), *std::move(transfer)});
  }
}

bool MpiFlow::reap() {
  while (!outgoing_.empty()) {
    const auto done = outgoing_.front().transfer->done();
    if (done && !*done) break;
    if (!done && !error_) {
      fail(flow_error(peer_, ErrorCode::kPeerLost, done.error().message));
    }
    home_.pool.put(std::move(outgoing_.front().block));
    outgoing_.pop_front();
  }
  return !outgoing_.empty();
}

bool MpiFlow::receive() {
  bool moved = start_receives();
  while (!incoming_.empty() && parked_ == nullptr) {
    const auto done = incoming_.front().transfer->done();
    if (done && !*done) break;
    MpiBlockOnItsWay came = std::move(incoming_.front());
    incoming_.pop_front();
    moved = true;
    if (!done) {
      fail(flow_error(peer_, ErrorCode::kPeerLost, done.error().message));
    } else {
      home_.counters.bytes_received.add(came.bytes);
      parked_ = std::move(came.block);
      parked_bytes_ = came.bytes - sizeof(MpiBlockHead);
      take(*parked_, parked_bytes_);
    }
    if (parked_ != nullptr && !(header_ && !arrival_)) home_.pool.put(std::move(parked_));
    moved = start_receives() || moved;
  }
  return moved;
}

// While a chunk is parked no more blocks are asked for than were already.
bool MpiFlow::start_receives() {
  bool moved = false;
  while (!arrivals_.empty() && parked_ == nullptr && incoming_.size() < kBlocksOnTheirWay) {
    const std::unique_ptr<MpiArrival> arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    moved = true;
    const std::size_t bytes = arrival->bytes();
    if (bytes < sizeof(MpiBlockHead) || bytes > MpiBlock::kBytes) {
      fail(flow_error(peer_, ErrorCode::kProtocol,
                      fmt::format("it sent a block of {} bytes", bytes)));
      continue;
    }
    auto block = home_.pool.get();
    auto transfer = arrival->receive(block->bytes(bytes));
    if (!transfer) {
      home_.pool.put(std::move(block));
      fail(flow_error(peer_, ErrorCode::kPeerLost, transfer.error().message));
      continue;
    }
    incoming_.push_back({std::move(block), bytes, *std::move(transfer)});
  }
  return moved;
}

void MpiFlow::take(MpiBlock& block, std::size_t bytes) {
  const MpiBlockHead& head = block.head();
  if (head.mark != home_.mark) return;  // of an earlier world
  const auto payload = std::span<const std::byte>(block.payload()).first(bytes);
  if (head.kind == MpiBlockKind::kEnd || head.kind == MpiBlockKind::kBroken) {
    return end_of_peer(head.kind);
  }
  if (error_ || discards_ || peer_ended_) return;
  if (head.kind == MpiBlockKind::kFrame && !header_) return begin_frame(block, payload);
  if (head.kind == MpiBlockKind::kRest && header_) return take_payload(payload);
  fail(flow_error(peer_, ErrorCode::kProtocol, "its blocks are out of order"));
}

void MpiFlow::begin_frame(MpiBlock& block, std::span<const std::byte> payload) {
  auto header = decode(block.head().header);
  if (!header) return fail(flow_error(peer_, header.error().code, header.error().message));
  if (payload.size() != std::min<std::uint64_t>(header->payload_bytes, MpiBlock::kPayload)) {
    return fail(flow_error(peer_, ErrorCode::kProtocol, "a block does not fit its header"));
  }
  header_ = *header;
  received_ = 0;
  offer();
}

// What began the frame is in parked_.
void MpiFlow::offer() {
  auto arrival = home_.work.arrive(peer_, *header_);
  if (!arrival) {
    Error error = std::move(arrival).error();
    if (error.culprit < 0) error.culprit = peer_;
    return fail(std::move(error));
  }
  if (arrival->kind == Arrival::Kind::kPark || arrival->kind == Arrival::Kind::kAsked) return;
  if (arrival->kind == Arrival::Kind::kInto && arrival->into.size() != header_->payload_bytes) {
    return fail(flow_error(peer_, ErrorCode::kInternal,
                           fmt::format("a chunk of {} bytes was given a place of {}",
                                       header_->payload_bytes, arrival->into.size())));
  }
  arrival_ = *arrival;
  take_payload(std::span<const std::byte>(parked_->payload()).first(parked_bytes_));
}

bool MpiFlow::retry() {
  if (parked_ == nullptr) return false;
  offer();
  if (header_ && !arrival_) return false;
  if (parked_ != nullptr) home_.pool.put(std::move(parked_));
  return true;
}

void MpiFlow::take_payload(std::span<const std::byte> payload) {
  const std::uint64_t left = header_->payload_bytes - received_;
  if (payload.size() != std::min<std::uint64_t>(left, MpiBlock::kPayload)) {
    return fail(flow_error(peer_, ErrorCode::kProtocol, "a block does not fit its frame"));
  }
  if (!payload.empty()) {
    if (arrival_->kind == Arrival::Kind::kInto) {
      std::memcpy(arrival_->into.data() + received_, payload.data(), payload.size());
    } else {
      absorb(payload);
    }
  }
  received_ += payload.size();
  if (received_ == header_->payload_bytes) finish_chunk();
}

// In pieces that stay in a core's cache while they are added.
void MpiFlow::absorb(std::span<const std::byte> payload) {
  for (std::size_t at = 0; at < payload.size(); at += kPieceBytes) {
    const auto piece = payload.subspan(at, std::min(kPieceBytes, payload.size() - at));
    home_.work.absorb(arrival_->ticket, received_ + at, piece);
  }
}

void MpiFlow::finish_chunk() {
  const ChunkTicket ticket = arrival_->ticket;
  header_.reset();
  arrival_.reset();
  home_.counters.chunks_received.add(1);
  home_.work.received(ticket);
}

void MpiFlow::end_of_peer(MpiBlockKind kind) {
  if (header_ && !discards_ && !error_) {
    fail(flow_error(peer_, ErrorCode::kPeerLost,
                    fmt::format("it stopped {} bytes before the end of a chunk of {}",
                                header_->payload_bytes - received_, header_->payload_bytes)));
  } else if (kind == MpiBlockKind::kBroken && !error_) {
    fail(flow_error(peer_, ErrorCode::kPeerLost, "it broke off"));
  }
  peer_ended_ = true;
}

void MpiFlow::fail(Error error) {
  if (error_) return;
  error_ = std::move(error);
  header_.reset();
  arrival_.reset();
  chunk_.reset();
  if (parked_ != nullptr) home_.pool.put(std::move(parked_));
  if (!peer_ended_ && !discards_) say_end(MpiBlockKind::kBroken);
}

std::optional<FlowEnd> MpiFlow::take_end() {
  if (reported_) return std::nullopt;
  if (error_) {
    reported_ = true;
    return FlowEnd{.clean = false, .error = *error_};
  }
  if (!peer_ended_ || chunk_ || refused_ || home_.work.has_work(peer_)) return std::nullopt;
  reported_ = true;
  return FlowEnd{.clean = true,
                 .error = flow_error(peer_, ErrorCode::kPeerLost, "it closed the connection")};
}

void MpiFlow::discard() {
  discards_ = true;
  chunk_.reset();
  header_.reset();
  arrival_.reset();
  if (parked_ != nullptr) home_.pool.put(std::move(parked_));
}

void MpiFlow::release(std::vector<MpiBlockOnItsWay>& left) {
  for (auto* queue : {&outgoing_, &incoming_}) {
    for (MpiBlockOnItsWay& each : *queue) left.push_back(std::move(each));
    queue->clear();
  }
}

}  // namespace fasthorovod::transport
