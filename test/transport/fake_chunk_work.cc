#include "test/transport/fake_chunk_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace fasthorovod::transport {
namespace {

constexpr std::chrono::seconds kGenerous{40};
constexpr std::size_t kLargestPiece = 128 << 10;

}  // namespace

std::vector<std::byte> pattern(std::uint64_t sequence, std::uint32_t transfer, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = (sequence + 1) * 0x9e3779b97f4a7c15U + transfer;
  for (std::size_t at = 0; at < size; at += sizeof state) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof state, size - at));
  }
  return bytes;
}

void FakeChunkWork::queue(int peer, std::uint64_t sequence, std::uint32_t transfer,
                          std::size_t size, Mode mode) {
  Outgoing chunk;
  chunk.header.sequence = sequence;
  chunk.header.transfer = transfer;
  chunk.header.hop = static_cast<std::uint32_t>(mode);
  chunk.owned = pattern(sequence, transfer, size);
  chunk.payload = chunk.owned;
  const std::lock_guard lock(mutex_);
  queues_[peer].push_back(std::move(chunk));
}

void FakeChunkWork::queue_lent(int peer, std::uint64_t sequence,
                               std::span<const std::byte> payload) {
  Outgoing chunk;
  chunk.header.sequence = sequence;
  chunk.header.hop = static_cast<std::uint32_t>(Mode::kCount);
  chunk.payload = payload;
  const std::lock_guard lock(mutex_);
  queues_[peer].push_back(std::move(chunk));
}

void FakeChunkWork::queue_run(int peer, std::uint64_t sequence, std::uint32_t count, Mode mode) {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte>& run = runs_.emplace_back();
  for (std::uint32_t transfer = 0; transfer < count; ++transfer) {
    std::ranges::copy(pattern(sequence, transfer, unit_), std::back_inserter(run));
  }
  for (std::uint32_t transfer = 0; transfer < count; ++transfer) {
    Outgoing chunk;
    chunk.header.sequence = sequence;
    chunk.header.transfer = transfer;
    chunk.header.hop = static_cast<std::uint32_t>(mode);
    chunk.payload = std::span(run).subspan(transfer * unit_, unit_);
    queues_[peer].push_back(std::move(chunk));
  }
}

void FakeChunkWork::park_from(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  park_from_ = sequence;
}

void FakeChunkWork::refuse_takes(bool refuse) {
  const std::lock_guard lock(mutex_);
  refuse_takes_ = refuse;
}

void FakeChunkWork::reject(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  reject_ = sequence;
}

bool FakeChunkWork::wait(const std::function<bool()>& done) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kGenerous, done);
}

bool FakeChunkWork::wait_sent(std::size_t count) const {
  return wait([&] { return sent_ >= count; });
}

bool FakeChunkWork::wait_received(std::size_t count) const {
  return wait([&] { return received_ >= count; });
}

bool FakeChunkWork::wait_ended(std::size_t count) const {
  return wait([&] { return ended_.size() >= count; });
}

bool FakeChunkWork::wait_parked(std::size_t count) const {
  return wait([&] { return parked_ >= count; });
}

std::size_t FakeChunkWork::sent_count() const {
  const std::lock_guard lock(mutex_);
  return sent_;
}

std::size_t FakeChunkWork::received_count() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

std::uint64_t FakeChunkWork::counted_bytes() const {
  const std::lock_guard lock(mutex_);
  return counted_bytes_;
}

std::size_t FakeChunkWork::joined_count() const {
  const std::lock_guard lock(mutex_);
  return joined_;
}

// That came under one header.
std::uint32_t FakeChunkWork::chunks_of(const FrameHeader& header) const {
  if (unit_ == 0) return 1;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(header.payload_bytes / unit_, 1));
}

std::vector<FakeChunkWork::Ended> FakeChunkWork::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::optional<OutgoingChunk> FakeChunkWork::take(int peer, TakeOrder /*order*/) {
  before_take_();
  const std::lock_guard lock(mutex_);
  auto& queue = queues_[peer];
  if (queue.empty() || refuse_takes_) return std::nullopt;
  const Key key{queue.front().header.sequence, queue.front().header.transfer};
  const auto [chunk, fresh] = in_flight_.emplace(key, std::move(queue.front()));
  EXPECT_TRUE(fresh);
  queue.pop_front();
  return OutgoingChunk{chunk->second.header, chunk->second.payload, {key.first, key.second}};
}

void FakeChunkWork::join_next(int peer, OutgoingChunk& chunk, std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  auto& queue = queues_[peer];
  while (unit_ > 0 && !queue.empty() && chunk.payload.size() + unit_ <= most) {
    const Outgoing& next = queue.front();
    if (next.header.sequence != chunk.header.sequence ||
        next.payload.data() != chunk.payload.data() + chunk.payload.size()) {
      return;
    }
    chunk.payload = {chunk.payload.data(), chunk.payload.size() + next.payload.size()};
    ++chunk.ticket.count;
    ++joined_;
    in_flight_.emplace(Key{next.header.sequence, next.header.transfer}, std::move(queue.front()));
    queue.pop_front();
  }
}

bool FakeChunkWork::has_work(int peer) const {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(peer);
  return queue != queues_.end() && !queue->second.empty();
}

Backlog FakeChunkWork::backlog(int peer) const {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(peer);
  if (queue == queues_.end() || queue->second.empty()) return {};
  Backlog backlog{.next = queue->second.front().payload.size()};
  for (const Outgoing& chunk : queue->second) backlog.untaken += chunk.payload.size();
  return backlog;
}

void FakeChunkWork::sent(const ChunkTicket& ticket) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t part = 0; part < ticket.count; ++part) {
    EXPECT_EQ(in_flight_.erase({ticket.operation, ticket.transfer + part}), 1U);
  }
  sent_ += ticket.count;
  changed_.notify_all();
}

core::Result<Arrival> FakeChunkWork::arrive(int /*peer*/, const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  if (header.sequence == reject_) return core::Error{core::ErrorCode::kProtocol, "unheard of", -1};
  if (header.sequence >= park_from_) {
    ++parked_;
    changed_.notify_all();
    return Arrival{.kind = Arrival::Kind::kPark, .into = {}, .ticket = {}};
  }
  const Key key{header.sequence, header.transfer};
  for (std::uint32_t part = 0; part < chunks_of(header); ++part) {
    const bool fresh = incoming_.try_emplace({key.first, key.second + part}).second;
    EXPECT_TRUE(fresh) << "chunk " << key.first << "/" << key.second + part << " came twice";
  }
  Incoming& chunk = incoming_.at(key);
  chunk.header = header;
  const auto mode = static_cast<Mode>(header.hop);
  if (mode != Mode::kCount) chunk.bytes.resize(header.payload_bytes);
  const ChunkTicket ticket{key.first, key.second, chunks_of(header)};
  if (mode != Mode::kInto) return Arrival{Arrival::Kind::kAbsorb, {}, ticket};
  chunk.filled = header.payload_bytes;
  return Arrival{Arrival::Kind::kInto, chunk.bytes, ticket};
}

void FakeChunkWork::absorb(const ChunkTicket& ticket, std::uint64_t offset,
                           std::span<const std::byte> piece) {
  const std::lock_guard lock(mutex_);
  Incoming& chunk = incoming_.at({ticket.operation, ticket.transfer});
  EXPECT_EQ(offset, chunk.filled) << "pieces come in order";
  chunk.filled += piece.size();
  EXPECT_LE(chunk.filled, chunk.header.payload_bytes);
  EXPECT_FALSE(piece.empty());
  EXPECT_LE(piece.size(), kLargestPiece);
  EXPECT_TRUE(piece.size() % kGranule == 0 || chunk.filled == chunk.header.payload_bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data()) % kGranule, 0U);
  if (chunk.bytes.empty()) {
    counted_bytes_ += piece.size();
  } else {
    std::ranges::copy(piece, chunk.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  }
}

void FakeChunkWork::received(const ChunkTicket& ticket) {
  Incoming chunk;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = incoming_.find({ticket.operation, ticket.transfer});
    ASSERT_NE(entry, incoming_.end());
    chunk = std::move(entry->second);
    entry->second = {};
  }
  EXPECT_EQ(chunk.filled, chunk.header.payload_bytes);
  const std::uint32_t count = ticket.count;
  const std::size_t size = chunk.bytes.size() / count;
  for (std::uint32_t part = 0; part < count; ++part) {
    const auto bytes = std::span(chunk.bytes).subspan(part * size, size);
    EXPECT_TRUE(std::ranges::equal(bytes, pattern(ticket.operation, ticket.transfer + part, size)))
        << "chunk " << ticket.operation << "/" << ticket.transfer + part << " of " << size;
  }
  const std::lock_guard lock(mutex_);
  received_ += count;
  changed_.notify_all();
}

void FakeChunkWork::flow_ended(int peer, const FlowEnd& end) {
  const std::lock_guard lock(mutex_);
  ended_.push_back({peer, end});
  changed_.notify_all();
}

}  // namespace fasthorovod::transport
