// A ChunkWork that always has a chunk for the peer, and takes whatever comes: for measuring what
// lanes carry. It reads from one piece of memory and receives into another, both so large that what
// is next is in no cache, as with large tensors. Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/placement_model.h"
#include "transport/chunk_work.h"

namespace fasthorovod::tools {

class EndlessWork final : public transport::ChunkWork {
 public:
  /// Enough for each of the two pieces of memory, which outlive this and hold floats.
  static constexpr std::size_t kMemory = std::size_t{32} << 20;

  EndlessWork(const core::LaneLoad& load, std::span<std::byte> from, std::span<std::byte> into)
      : load_(load), from_(from), into_(into) {}

  [[nodiscard]] std::uint64_t received_bytes() const { return received_.load(); }
  /// A flow has ended by itself.
  [[nodiscard]] bool broke() const { return broke_.load(); }

  std::optional<transport::OutgoingChunk> take(int peer, transport::TakeOrder order) override;
  void join_next(int, transport::OutgoingChunk&, std::uint64_t) override {}
  [[nodiscard]] bool has_work(int /*peer*/) const override { return true; }
  [[nodiscard]] transport::Backlog backlog(int /*peer*/) const override { return {}; }
  void sent(const transport::ChunkTicket& /*ticket*/) override {}
  core::Result<transport::Arrival> arrive(int peer, const transport::FrameHeader& header) override;
  void absorb(const transport::ChunkTicket& ticket, std::uint64_t offset,
              std::span<const std::byte> piece) override;
  void received(const transport::ChunkTicket& /*ticket*/) override {
    received_.fetch_add(load_.chunk_bytes);
  }
  void flow_ended(int /*peer*/, const transport::FlowEnd& /*end*/) override { broke_.store(true); }

 private:
  [[nodiscard]] std::size_t next(std::size_t& at) const;

  const core::LaneLoad load_;
  const std::span<std::byte> from_;
  const std::span<std::byte> into_;
  std::atomic<std::uint64_t> received_{0};
  std::atomic<bool> broke_{false};

  std::mutex mutex_;  // of what follows
  std::size_t sent_at_ = 0;
  std::size_t received_at_ = 0;
  double added_ = 0;
};

}  // namespace fasthorovod::tools
