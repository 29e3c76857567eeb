// A lane in an auxiliary process, as its engine sees it.
//
// The sockets of its flows stay open here, too: when the auxiliary dies, the peers see nothing
// until the engine has said why and stops, so all ranks tell the same story.
//
// Thread: any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/arena.h"
#include "transport/arena_heap.h"
#include "transport/aux_desk.h"
#include "transport/aux_process.h"
#include "transport/aux_server.h"
#include "transport/lane_place.h"

namespace fasthorovod::transport {

/// What an auxiliary needs of its rank. The references outlive the lane.
struct AuxHome {
  AuxServer& server;
  const Arena& arena;
  ArenaHeap& heap;
  std::size_t staging_bytes = std::size_t{16} << 20;  // for each auxiliary, of the heap
  std::chrono::milliseconds answer_limit{8'000};      // to tell that it is alive
};

class AuxLane final : public LanePlace, private AuxClient {
 public:
  /// Attaches a leased process, whose flows are among those of `options.rates`. `on_lost` hears at
  /// most once, on any thread, how the process ended or why it was given up ("was killed by signal
  /// 9"); it must not block. Not after stop().
  static core::Result<std::unique_ptr<AuxLane>> attach(
      const AuxHome& home, AuxProcessPtr process, const LaneOptions& options, ChunkWork& work,
      std::function<void(const std::string& how)> on_lost);
  ~AuxLane() override { stop(); }

  void add_flow(int peer, FileDescriptor socket) override;
  void wake() override { server_.wake(); }
  void begin_stop() override;
  /// Gives the process back to the pool, or ends it when it does not let go in time.
  void stop() override;
  [[nodiscard]] LaneStatistics statistics() const override;

 private:
  struct Parts {
    AuxProcessPtr process;
    std::span<std::byte> memory;
    FileDescriptor bell;
    std::function<void(const std::string&)> on_lost;
  };
  AuxLane(const AuxHome& home, Parts parts, ChunkWork& work, std::shared_ptr<RateBoard> rates);

  bool serve() override;
  bool arm() override;
  void check_alive(core::TimePoint now) override;
  void forget_alive() override { asked_at_.reset(); }

  core::Status introduce(const LaneOptions& options);
  [[nodiscard]] bool detached() const;
  void give_up(const std::string& how);
  void lost(const std::string& how);

  AuxServer& server_;
  const Arena& arena_;
  ArenaHeap& heap_;
  const std::chrono::milliseconds answer_limit_;
  const AuxProcessPtr process_;
  const std::span<std::byte> memory_;  // mailbox, then staging
  AuxMailbox& mailbox_;
  const FileDescriptor bell_;  // wakes the auxiliary
  AuxDesk desk_;
  std::function<void(const std::string&)> on_lost_;
  std::atomic<bool> lost_{false};

  std::optional<core::TimePoint> asked_at_;  // server's thread, like the next
  std::uint64_t heard_then_ = 0;

  mutable std::mutex mutex_;            // of what follows
  std::vector<FileDescriptor> flows_;   // what the auxiliary was given
  std::optional<LaneStatistics> last_;  // once it stops
  bool told_ = false;                   // to detach
  bool stopped_ = false;
};

}  // namespace fasthorovod::transport
