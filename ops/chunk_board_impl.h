// The inside of the ChunkBoard, for the files that implement it:
//   chunk_board.cc          starting and ending operations
//   chunk_board_chunks.cc   chunks that leave and come
//   chunk_board_early.cc    chunks that leave before the receiver has started
//   chunk_board_gates.cc    pieces that may move
//   chunk_board_notices.cc  the small frames, and what ranks of the ordered door tell each other
//   chunk_board_flows.cc    flows that end, peers that are gone
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ops/chunk_board.h"
#include "ops/early_records.h"
#include "ops/flight_table.h"
#include "ops/peer_table.h"

namespace fasthorovod::ops {

// Callbacks (done, on_fault, wake_lanes) run after the lock is released.
class ChunkBoard::Impl {
 public:
  Impl(std::function<void(int, core::Error)> on_fault, std::function<void()> wake_lanes,
       OrderedHooks hooks, std::function<int(int)> flows_with)
      : flows_with_(std::move(flows_with)),
        on_fault_(std::move(on_fault)),
        wake_lanes_(std::move(wake_lanes)),
        hooks_(std::move(hooks)) {}

  void start(Operation operation);
  void pass(std::uint32_t group, std::uint64_t sequence);
  void open_gates(std::uint32_t group, std::uint64_t sequence, std::uint32_t count);
  void fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error);
  void say_ready_to(std::uint32_t group, std::uint64_t sequence, int rank);
  void depart(int peer, const core::Error& words, int flows);
  [[nodiscard]] std::vector<int> awaited(std::uint32_t group, std::uint64_t sequence) const;
  void forget_group(std::uint32_t group);
  void send_control(ControlFrame frame);
  void fail_all(const core::Error& error);
  [[nodiscard]] std::size_t in_flight() const;
  [[nodiscard]] std::optional<Wait> waiting() const;

  std::optional<transport::OutgoingChunk> take(int peer, transport::TakeOrder order);
  void join_next(int peer, transport::OutgoingChunk& chunk, std::uint64_t most);
  [[nodiscard]] bool has_work(int peer) const;
  [[nodiscard]] transport::Backlog backlog(int peer) const;
  void sent(const transport::ChunkTicket& ticket);
  core::Result<transport::Arrival> arrive(int peer, const transport::FrameHeader& header);
  void absorb(const transport::ChunkTicket& ticket, std::uint64_t offset,
              std::span<const std::byte> piece);
  void received(const transport::ChunkTicket& ticket);
  void flow_ended(int peer, const transport::FlowEnd& end);

 private:
  struct Fault {
    int peer = 0;
    core::Error error;
  };

  // Who sent it, and what.
  using EarlyNotice = std::pair<int, ReadyNotice>;

  // Those of a rank that is some operations ahead, in many groups.
  static constexpr std::size_t kMostNotices = 1U << 16;
  static constexpr std::size_t kMostEarlyBytes = 256U << 20;

  struct Ended {
    Operation operation;
    core::Status status;
  };

  // What the end of a peer means for the operations in flight.
  struct Loss {
    std::optional<Fault> fault;
    std::vector<Departure> departures;
    std::vector<Ended> ended;  // had failed before, and waited for that peer's flows
  };

  core::Status check_start(const Operation& operation);
  Loss launch(ScheduleRunner& runner);
  void say_ready(const ScheduleRunner& runner);
  std::vector<Disagreement> meet_peers(ScheduleRunner& runner);
  std::vector<Disagreement> pass_over(const Operation& operation);
  // What a notice led to.
  struct Heard {
    std::optional<Disagreement> disagreement;
    std::optional<core::Error> error;  // of the sender
    bool runnable = false;             // chunks may leave now
  };

  Heard hear(ScheduleRunner& runner, int peer, const ReadyNotice& notice);
  void queue_control(ControlFrame frame);
  bool join_one(int peer, ScheduleRunner& runner, transport::OutgoingChunk& chunk,
                std::uint64_t most);
  void count_sent(const transport::ChunkTicket& ticket, std::uint32_t part);
  bool count_received(const transport::ChunkTicket& ticket, std::uint32_t part);
  void control_received(const transport::ChunkTicket& ticket);
  void ready_received(const ControlFrame& frame);
  void early_received(ControlFrame frame);
  void deliver(ControlFrame frame);
  [[nodiscard]] bool is_over() const;
  void drop_early(std::uint32_t group, std::uint64_t sequence);
  core::Result<transport::Arrival> arrive_early(int peer, const transport::FrameHeader& header);
  Heard notice(const ControlFrame& frame);
  void opened_received(const ControlFrame& frame);
  std::optional<core::Error> peer_opened(const ControlFrame& frame);
  [[nodiscard]] bool is_dropped(const transport::FrameHeader& header) const;
  static void add_up(std::unique_lock<std::mutex>& lock, const ScheduleRunner& runner,
                     std::optional<std::uint32_t> sum);
  void settle(std::unique_lock<std::mutex>& lock, ScheduleRunner& runner,
              const std::vector<std::uint32_t>& over);
  std::optional<Ended> finished(const ScheduleRunner& runner);
  [[nodiscard]] Loss loss_of(const ScheduleRunner& runner) const;
  [[nodiscard]] const core::Error* who_left(const Operation& operation, int culprit) const;
  void lose(const ScheduleRunner& runner, core::Error error, Loss& loss) const;
  [[nodiscard]] bool all_ended(int peer);
  Loss lose_peer(int peer, const core::Error& cause);
  Loss end_flow(int peer, const transport::FlowEnd& end);
  void tell(Loss loss) const;
  void tell_of_peer(int peer, std::unique_lock<std::mutex> lock, Loss loss) const;
  [[nodiscard]] core::Error unknown(int peer, const transport::FrameHeader& header) const;

  const std::function<int(int)> flows_with_;
  const std::function<void(int, core::Error)> on_fault_;
  const std::function<void()> wake_lanes_;
  const OrderedHooks hooks_;

  mutable std::mutex mutex_;
  FlightTable flights_;
  PeerTable peers_;
  EarlyRecords<EarlyNotice> early_notices_{kMostNotices};
  EarlyRecords<ControlFrame> early_chunks_{kMostEarlyBytes};
  ControlFrames control_;
  std::optional<std::uint32_t> epoch_;  // of the operations, once one has started
  std::optional<core::Error> over_;     // set by fail_all
};

}  // namespace fasthorovod::ops
