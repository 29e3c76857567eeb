// What passes between this rank and one other over MPI: both directions, and when it has ended.
//
// Sending: chunks are copied into blocks, of which a few are on their way at a time; a chunk has
// been sent when its last byte was copied. Receiving: blocks are taken in the order in which they
// were sent; a chunk that may not start yet holds back those behind it, in MPI's hands.
//
// Ends: when the peer has stopped between two frames, and all that this side still had for it is
// gone, cleanly (as with a socket, what a peer that has stopped no longer reads counts as sent);
// when it stopped inside a frame, broke off, or sent what no peer sends, or MPI failed, at once.
//
// Thread: owner (the lane).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "transport/chunk_work.h"
#include "transport/lane_counters.h"
#include "transport/mpi_block.h"
#include "transport/mpi_blocks.h"

namespace fasthorovod::transport {

/// What the flows of a lane share. All outlive them.
struct MpiFlowHome {
  MpiBlocks& mpi;
  ChunkWork& work;
  LaneCounters& counters;
  MpiBlockPool& pool;
  std::uint64_t mark;
};

class MpiFlow final {
 public:
  MpiFlow(int peer, const MpiFlowHome& home) : peer_(peer), home_(home) {}

  [[nodiscard]] int peer() const { return peer_; }

  /// Takes chunks and sends blocks while there is room for them; whether any left.
  bool send();
  /// Work was there, but was not given (ChunkWork::take): ask again soon.
  [[nodiscard]] bool was_refused() const { return refused_; }

  /// A block of the peer has come; it waits for its turn.
  void add(std::unique_ptr<MpiArrival> arrival) { arrivals_.push_back(std::move(arrival)); }
  /// Goes on with what has come; whether anything moved.
  bool receive();
  /// Asks again whether a parked chunk may start; whether it could.
  bool retry();

  /// How the flow ended; once.
  std::optional<FlowEnd> take_end();

  /// Tells the peer that nothing follows.
  void say_end(MpiBlockKind kind);
  /// Lets go of blocks that have left; whether some are still on their way.
  bool reap();
  /// Whether the peer has said that nothing follows, or was given up.
  [[nodiscard]] bool peer_is_done() const { return peer_ended_ || error_.has_value(); }
  /// From now on what comes is dropped unseen, but for the peer's end.
  void discard();

  /// Hands over what MPI has not let go of.
  void release(std::vector<MpiBlockOnItsWay>& left);

 private:
  bool send_block();
  void drop_work();
  void start_send(std::unique_ptr<MpiBlock> block, std::size_t bytes);
  bool start_receives();
  void take(MpiBlock& block, std::size_t bytes);
  void begin_frame(MpiBlock& block, std::span<const std::byte> payload);
  void offer();
  void take_payload(std::span<const std::byte> payload);
  void absorb(std::span<const std::byte> payload);
  void finish_chunk();
  void end_of_peer(MpiBlockKind kind);
  void fail(core::Error error);

  const int peer_;
  const MpiFlowHome home_;

  std::optional<OutgoingChunk> chunk_;  // in hand
  std::size_t copied_ = 0;              // of its payload
  bool refused_ = false;
  std::deque<MpiBlockOnItsWay> outgoing_;

  std::deque<std::unique_ptr<MpiArrival>> arrivals_;
  std::deque<MpiBlockOnItsWay> incoming_;
  std::optional<FrameHeader> header_;  // of the frame being received
  std::optional<Arrival> arrival_;     // where its payload goes; nothing while it is parked
  std::unique_ptr<MpiBlock> parked_;   // the block that began it
  std::size_t parked_bytes_ = 0;       // of its payload in that block
  std::uint64_t received_ = 0;         // of its payload

  bool discards_ = false;
  bool peer_ended_ = false;
  std::optional<core::Error> error_;
  bool reported_ = false;
};

}  // namespace fasthorovod::transport
