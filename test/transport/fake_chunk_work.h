// A ChunkWork for tests of the lane: it queues chunks with a known pattern, checks that the lane
// keeps its side of the contract, and compares what arrives with the pattern. Violations are test
// failures. Thread: any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/chunk_work.h"

namespace fasthorovod::transport {

/// The bytes of chunk (sequence, transfer).
std::vector<std::byte> pattern(std::uint64_t sequence, std::uint32_t transfer, std::size_t size);

class FakeChunkWork final : public ChunkWork {
 public:
  enum class Mode : std::uint32_t {
    kInto = 0,
    kAbsorb = 1,
    kCount = 2
  };  // travels as the header's hop

  struct Ended {
    int peer = 0;
    FlowEnd end;
  };

  /// Queues a chunk; the caller wakes the lane.
  void queue(int peer, std::uint64_t sequence, std::uint32_t transfer, std::size_t size, Mode mode);
  /// Queues a chunk whose payload belongs to the caller; kCount mode, its bytes are counted only.
  void queue_lent(int peer, std::uint64_t sequence, std::span<const std::byte> payload);
  /// Queues chunks 0 to `count` - 1 that follow each other in memory, of `unit` bytes each; both
  /// sides say what the unit is, since they may come joined.
  void queue_run(int peer, std::uint64_t sequence, std::uint32_t count, Mode mode);
  void cut_runs_by(std::size_t unit) { unit_ = unit; }
  /// From now on arrivals of this sequence or a later one are parked.
  void park_from(std::uint64_t sequence);
  void refuse_takes(bool refuse);
  /// Called before each take(), as if another thread came between. Before the lane runs.
  void before_take(std::function<void()> hook) { before_take_ = std::move(hook); }
  /// Arrivals of this sequence are an error of the peer.
  void reject(std::uint64_t sequence);

  /// Waits until so many chunks (flows) were sent, received, ended since the start; false after a
  /// generous time.
  bool wait_sent(std::size_t count) const;
  bool wait_received(std::size_t count) const;
  bool wait_ended(std::size_t count) const;
  bool wait_parked(std::size_t count) const;

  [[nodiscard]] std::size_t sent_count() const;
  [[nodiscard]] std::size_t received_count() const;
  [[nodiscard]] std::uint64_t counted_bytes() const;
  /// Chunks that left joined to another one.
  [[nodiscard]] std::size_t joined_count() const;
  [[nodiscard]] std::vector<Ended> ended() const;

  using ChunkWork::take;
  std::optional<OutgoingChunk> take(int peer, TakeOrder order) override;
  void join_next(int peer, OutgoingChunk& chunk, std::uint64_t most) override;
  [[nodiscard]] bool has_work(int peer) const override;
  [[nodiscard]] Backlog backlog(int peer) const override;
  void sent(const ChunkTicket& ticket) override;
  core::Result<Arrival> arrive(int peer, const FrameHeader& header) override;
  void absorb(const ChunkTicket& ticket, std::uint64_t offset,
              std::span<const std::byte> piece) override;
  void received(const ChunkTicket& ticket) override;
  void flow_ended(int peer, const FlowEnd& end) override;

 private:
  struct Outgoing {
    FrameHeader header;
    std::vector<std::byte> owned;
    std::span<const std::byte> payload;
  };
  struct Incoming {
    FrameHeader header;
    std::vector<std::byte> bytes;
    std::uint64_t filled = 0;
  };
  using Key = std::pair<std::uint64_t, std::uint32_t>;

  [[nodiscard]] std::uint32_t chunks_of(const FrameHeader& header) const;

  bool wait(const std::function<bool()>& done) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<int, std::deque<Outgoing>> queues_;
  std::map<Key, Outgoing> in_flight_;
  std::map<Key, Incoming> incoming_;
  std::function<void()> before_take_ = [] {};
  std::uint64_t park_from_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t reject_ = std::numeric_limits<std::uint64_t>::max();
  bool refuse_takes_ = false;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::size_t parked_ = 0;
  std::uint64_t counted_bytes_ = 0;
  std::size_t unit_ = 0;  // of runs; 0: there are none
  std::size_t joined_ = 0;
  std::deque<std::vector<std::byte>> runs_;
  std::vector<Ended> ended_;
};

}  // namespace fasthorovod::transport
