// The flows of one auxiliary among all of its rank: what the auxiliary tells of them goes to the
// rank's RateBoard, and here is decided for them what a flow on a lane in a thread decides by
// itself (local_seat.h). An auxiliary knows neither how much is left to send nor other lanes'
// flows.
//
// What stands in shared memory is believed as far as it matters: nonsense makes for a bad choice of
// flows, no more.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "core/clock.h"
#include "transport/aux_mailbox.h"
#include "transport/chunk_work.h"
#include "transport/peer_rates.h"
#include "transport/tail_guard.h"

namespace fasthorovod::transport {

class AuxSeats final {
 public:
  /// `ring` wakes the auxiliary; it must not block.
  AuxSeats(std::span<SharedFlow> shared, std::shared_ptr<RateBoard> rates,
           std::function<void()> ring);
  ~AuxSeats() { close(); }
  AuxSeats(const AuxSeats&) = delete;
  AuxSeats& operator=(const AuxSeats&) = delete;

  /// The auxiliary is given a flow to `peer`; before it hears of it. The number of the flow, or
  /// kNoFlow when the table is full.
  std::uint32_t add(int peer);

  /// False for a number that no flow was given, and is not kNoFlow.
  [[nodiscard]] bool knows(std::uint32_t flow) const;

  /// One of the flows to the peer has ended. True: it was the last.
  bool end(int peer);
  /// It carries nothing any more. Idempotent.
  void give_up(std::uint32_t flow);

  /// The flow could take a chunk of those that `work` has for its peer: the next one is another's.
  [[nodiscard]] bool leaves_next(std::uint32_t flow, const ChunkWork& work);

  /// As of PeerRates. The flow is one of those to the peer.
  void look(const AuxRequest& request);
  void rest(std::uint32_t flow);

  /// From now on nothing in shared memory is touched: all flows give up.
  void close();

 private:
  struct Seat {
    int peer = 0;
    std::shared_ptr<PeerRates> rates;  // null once it gave up
    TailGuard guard{};
  };

  std::shared_ptr<PeerRates> rates_of(std::uint32_t flow) const;

  const std::span<SharedFlow> shared_;
  const std::shared_ptr<RateBoard> rates_;  // the rank's lanes own it together
  const std::function<void()> ring_;
  mutable std::mutex mutex_;    // of what follows
  std::deque<Seat> seats_;      // by number
  std::map<int, int> by_peer_;  // how many flows the auxiliary has
};

}  // namespace fasthorovod::transport
