// The chunk board of one rank: all operations in flight and which of their chunks may leave to
// which peer. It is the ChunkWork that lanes ask: whichever flow can send takes the next runnable
// chunk of its peer (first in, first out, unless it asks for fresh ones).
//
// The result never depends on who carried what: a chunk's place in the sum is fixed by the
// schedule, and a chunk is reduced into the operation's buffer only by the one flow that received
// it.
//
// A chunk of an operation that was not started here yet parks its flow (Arrival::kPark) until
// start(). This can not deadlock as long as all ranks start operations in one order and keep at
// most the same number in flight: whoever sent ahead has completed what we still work on, so
// nothing we need is behind the parked chunk.
//
// Operations of the ordered door never come before their start. Before data moves, ranks that
// exchange data tell each other by a small frame that they have started the operation, and what
// they believe it to be; a chunk leaves only to a rank that has said so. Notices that come before
// start() are remembered. So groups do not wait for one another, and ranks that disagree never
// touch each other's data.
//
// Small operations do not wait for notices (Operation::early): chunks leave behind the rank's own
// notice, where there is a gate once that is open, and are kept, a few KiB a peer, until the
// operation starts. Nothing parks, and nothing is trusted but what bears the fingerprint of the
// operation that started here. The rest is dropped; the notice tells of the disagreement.
//
// Gates. A schedule whose ranks share memory within hosts is cut into pieces; nothing of a piece
// moves before open_gates() says that this rank has made its part of it. A chunk of one of the
// first Schedule::slots pieces leaves when the gate is open here; it may find the other's gate
// closed, and park there. A later piece leaves only to a rank that has said, by a small frame, that
// its gate is open. A schedule that receives early parks nothing at gates, which may then wait for
// chunks of other ranks. What parks can not deadlock:
//
//   - The gates of the first pieces wait for nothing but steps inside the host, which never block,
//     once all ranks of the host have started the operation. On the ordered door they have: a rank
//     says that it is ready at its first open_gates() (Operation::held), and chunks leave only
//     then.
//   - On the named door let n be the oldest operation that is not over on all ranks; everybody has
//     started it, or will, for all before it are over. Who has not completed n has started nothing
//     beyond n + window - 1, so what it has sent before its last frame of n belongs to operations
//     that all ranks of the receiver's host may start, n being over or not. So no frame of n stays
//     behind a parked chunk, and n ends.
//   - The gate of piece k + slots waits for piece k to be over on all ranks of the host, and so for
//     sends. If its chunks came unasked, three hosts in a ring with three operations in flight
//     could each park what the next one must get past to be ready; so they are asked for.
//
// Thread: any. A mutex guards queues and counters, never the data; reductions run outside it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "ops/control_frames.h"
#include "ops/operation.h"
#include "transport/chunk_work.h"

namespace fasthorovod::ops {

/// A peer believes an operation of the ordered door to be another one than this rank does.
struct Disagreement {
  std::uint32_t group = 0;  // as on the wire
  std::uint64_t sequence = 0;
  int peer = 0;
  std::string own;  // what this rank believes it to be
  std::string peers;
};

/// An operation of the ordered door, or a message, needs a rank that has left in good order.
struct Departure {
  std::uint32_t group = 0;  // as on the wire
  std::uint64_t sequence = 0;
  core::Error error;
};

/// What a board tells of the ordered door. Called without a lock held, on the thread that found
/// out; must not block.
struct OrderedHooks {
  std::function<void(const Disagreement&)> disagreement = [](const Disagreement&) {};
  std::function<void(const Departure&)> departure = [](const Departure&) {};
  /// An announcement or a refusal.
  std::function<void(const ControlFrame&)> message = [](const ControlFrame&) {};
  /// Nothing more comes from a peer.
  std::function<void(int peer, const core::Error& cause)> gone = [](int, const core::Error&) {};
};

class ChunkBoard final : public transport::ChunkWork {
 public:
  /// `on_fault` hears of a flow's end that leaves an operation unfinished, or of a peer's protocol
  /// error (at most once a flow; any thread), and of an operation started when such a peer was gone
  /// already. `wake_lanes` is called when chunks became runnable or a parked flow may go on. Both
  /// are called without a lock held and must not block. `flows_with` says how many flows this
  /// rank and a peer share: a peer that ends one in good order is gone only when it has ended all,
  /// on whichever lanes, also those that no lane has yet.
  ChunkBoard(
      std::function<void(int peer, core::Error)> on_fault, std::function<void()> wake_lanes,
      OrderedHooks hooks = {}, std::function<int(int peer)> flows_with = [](int) { return 1; });
  ~ChunkBoard() override;

  /// Starts an operation; one without transfers is done inside the call. A group's operations start
  /// in the order of their sequences, gaps allowed; an operation out of order, or whose schedule
  /// does not fit its buffer, is done at once with kInternal. After fail_all it is done at once
  /// with that error.
  void start(Operation operation);

  /// An operation of the ordered door ran to its end elsewhere, so all its ranks agreed about it;
  /// its group's later ones may start, and what peers still say of it means nothing.
  void pass(std::uint32_t group, std::uint64_t sequence);

  /// Pieces [0, count) of an operation may move; gates do not close again. The first call, of which
  /// the count may be 0, also ends that it is held. Nothing when the operation is over.
  void open_gates(std::uint32_t group, std::uint64_t sequence, std::uint32_t count);

  /// Ends one operation of the ordered door, or message, with `error`: at once, or when no lane
  /// touches its memory any more. One that did not start here must not be started later. What peers
  /// sent for it, not knowing, is dropped.
  void fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error);

  /// Tells a rank with which an operation in flight exchanges nothing here that this one has
  /// started it: should that rank believe in another operation, it finds out.
  void say_ready_to(std::uint32_t group, std::uint64_t sequence, int rank);

  /// A rank leaves in good order, in these words. Once so many flows to it have ended, an operation
  /// of the ordered door that needs it is a departure, and no fault.
  void depart(int peer, const core::Error& words, int flows);

  /// World ranks that are not ready for an operation in flight.
  [[nodiscard]] std::vector<int> awaited(std::uint32_t group, std::uint64_t sequence) const;

  /// Lets go of what is remembered of a group of the ordered door; its id does not come back. Its
  /// operations have ended or failed.
  void forget_group(std::uint32_t group);

  /// Sends a small frame, before all chunks that wait for that peer.
  void send_control(ControlFrame frame);

  /// Ends every operation in flight with `error`, in the order of their start, and is the end of
  /// this board: nothing runs on it any more. No lane may be running: the buffers go back to the
  /// callers.
  void fail_all(const core::Error& error);

  [[nodiscard]] std::size_t in_flight() const;

  /// What the oldest operation in flight waits for; nothing when none is in flight.
  struct Wait {
    int peer = -1;     // a planned one: the first rank it needs something from or owes something to
    std::string text;  // for messages: "allreduce of 'w' waits for rank 1, 2"
    std::string title = {};  // of the operation: "allreduce of 'w'"
  };
  [[nodiscard]] std::optional<Wait> waiting() const;

  using ChunkWork::take;
  std::optional<transport::OutgoingChunk> take(int peer, transport::TakeOrder order) override;
  void join_next(int peer, transport::OutgoingChunk& chunk, std::uint64_t most) override;
  [[nodiscard]] bool has_work(int peer) const override;
  [[nodiscard]] transport::Backlog backlog(int peer) const override;
  void sent(const transport::ChunkTicket& ticket) override;
  core::Result<transport::Arrival> arrive(int peer, const transport::FrameHeader& header) override;
  void absorb(const transport::ChunkTicket& ticket, std::uint64_t offset,
              std::span<const std::byte> piece) override;
  void received(const transport::ChunkTicket& ticket) override;
  void flow_ended(int peer, const transport::FlowEnd& end) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fasthorovod::ops
