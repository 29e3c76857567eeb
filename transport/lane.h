// A lane: one event loop over several flows (raw non-blocking sockets, epoll). It takes the next
// runnable chunk for a peer whenever one of its flows to that peer can send, so the flow that
// drains takes more; it reads what comes and hands it to ChunkWork. Where the loop runs (engine
// thread of its own, auxiliary process, caller) is not its business: somebody calls run() or
// step().
//
// Sending: a flow takes a chunk only when the socket is writable (TCP_NOTSENT_LOWAT) and its unsent
// bytes are below half of that mark, so a slow flow never holds a chunk hostage. Near the end of
// what there is to send it leaves chunks to faster flows, on whichever lanes of the rank
// (tail_guard.h), and is asked again within 1 ms. Flows that are not in use (peer_rates.h) take no
// chunks, but receive. Header and payload leave in one sendmsg, small frames together with the next
// chunk. Where the network is no limit (flow_speed.h) one flow takes several chunks at once, and
// goes on before another one gets any.
//
// Receiving: up to 128 KiB a call into a scratch of the flow, or straight into place. In one turn
// of the loop a flow sends at most 1 MiB, and reads at most 512 KiB.
//
// Idle: store the idle flag, look again whether anybody called wake(), then epoll_wait. wake() is
// one atomic exchange, and an eventfd write only when the lane sleeps; whatever makes a chunk
// runnable or startable is followed by it.
//
// Ends: a flow is closed, and reported by flow_ended once, when
//   - it is reset, the peer ends it inside a frame, or the peer sends what arrive() or the header's
//     CRC refuses: at once;
//   - sending fails: after what the peer had sent is read (at once if the flow is parked). A chunk
//     was lost;
//   - the peer ends its direction between two frames: when no chunk is in hand and there is no work
//     for that peer. Until then the flow goes on sending. Only this end is clean; work for the peer
//     that turns up later finds no flow.
// Flows that stop() or the destructor closes are not reported.
//
// Thread: run/step by one owner; add_flow, wake, stop and statistics from any thread. The ChunkWork
// outlives the lane's last turn (run or step); the destructor does not call it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/result.h"
#include "transport/chunk_work.h"
#include "transport/file_descriptor.h"
#include "transport/flow_seat.h"
#include "transport/peer_rates.h"

namespace fasthorovod::transport {

struct LaneOptions {
  int notsent_lowat = 256 << 10;               // bytes a flow may hold unsent in the kernel
  std::chrono::milliseconds close_limit{500};  // at the end, for the peers to acknowledge
  bool shared_sockets = false;  // others hold the flows' sockets too, so closing ends no connection
  std::shared_ptr<RateBoard> rates = {};  // shared by the lanes of a rank; its own if none is given
  SeatMaker seats = {};                   // of its flows, where those are not seats at `rates`
};

/// Bytes since the lane started, headers included.
struct LaneStatistics {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunks_received = 0;
  std::uint64_t turns = 0;  // of the loop; an idle lane makes none
};

class Lane final {
 public:
  /// `bell`: an eventfd that wakes the lane as wake() does, but for parked flows; its own if none
  /// is given.
  static core::Result<std::unique_ptr<Lane>> create(const LaneOptions& options, ChunkWork& work,
                                                    FileDescriptor bell = {});
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Hands over a connected, authenticated stream socket to `peer`. After stop() it is just closed.
  /// `number`: for its seat.
  void add_flow(int peer, FileDescriptor socket, std::uint32_t number = 0);

  /// Something became runnable, or startable for a parked flow.
  void wake();

  /// Runs until stop(), then closes every flow in good order: what was written still arrives, but a
  /// chunk in hand is cut off. Buffers that were lent to the lane are free when run() has returned.
  void run();
  /// For good: a stopped lane does not run again.
  void stop();

  /// One turn of the loop, waiting at most `timeout`; for tests and inline lanes. False: nothing
  /// happened.
  bool step(std::chrono::milliseconds timeout);

  /// wake() or stop() was called since the last turn.
  [[nodiscard]] bool called() const;
  [[nodiscard]] bool stopped() const;

  [[nodiscard]] LaneStatistics statistics() const;

 private:
  class Impl;
  explicit Lane(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fasthorovod::transport
