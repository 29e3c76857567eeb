// The rank's side of one mailbox: does for an auxiliary's lane what a lane in this process does by
// itself, asking the same ChunkWork.
//
// Payload that lies in the arena travels as a place. Other payload is copied: what leaves into a
// staging block before it is assigned, what comes out of one when it is complete. Staging is
// bounded, half of it for each direction, and an answer waits until a block is free. That can not
// block for ever: what comes is completed by a peer that has begun to send it, whatever leaves.
//
// A chunk is assigned to the flow that asked, unless that one leaves it to others (aux_seats.h).
//
// Thread: owner but for add_flow; one thread serves all desks of a rank (aux_server.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "transport/arena.h"
#include "transport/arena_heap.h"
#include "transport/aux_mailbox.h"
#include "transport/aux_seats.h"
#include "transport/chunk_work.h"
#include "transport/file_descriptor.h"
#include "transport/peer_rates.h"

namespace fasthorovod::transport {

/// Where an auxiliary and its rank meet.
struct AuxPlace {
  const Arena& arena;
  AuxMailbox& mailbox;
  std::span<std::byte> staging;  // of the arena; whole pages
};

class AuxDesk final {
 public:
  /// `bell` (an eventfd) wakes the auxiliary. `rates`: of all flows of the rank; its own if null.
  AuxDesk(const AuxPlace& place, FileDescriptor bell, ChunkWork& work,
          std::shared_ptr<RateBoard> rates);

  /// The auxiliary is given a flow to `peer`; before it hears of it, by the number that this
  /// returns. Any thread.
  std::uint32_t add_flow(int peer) { return seats_.add(peer); }
  /// It is served no more, and its flows are none of the rank's. Not while it is served.
  void close() { seats_.close(); }

  /// Serves what was asked, and what may have become possible since. True: it should be called
  /// again within a millisecond, because the ChunkWork holds something back. An error when the
  /// auxiliary writes nonsense, or a chunk can never be staged.
  core::Result<bool> serve();

  /// Before sleeping: false when something was asked meanwhile.
  [[nodiscard]] bool arm() { return requests_.arm(); }

  void ask_alive() {
    post({.kind = AuxAnswer::Kind::kAskAlive});
    flush();
  }

  /// Requests so far, of any kind.
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  struct Outgoing {
    int peer = 0;
    OutgoingChunk chunk;
    std::span<std::byte> staged;  // empty when the payload lies in the arena
  };
  struct Want {
    int peer = 0;
    std::uint32_t flow = kNoFlow;
    bool told = false;                   // that there is nothing just now
    std::optional<OutgoingChunk> taken;  // and waits for staging
  };
  struct Incoming {
    int peer = 0;
    FrameHeader header;
    std::optional<Arrival> arrival;  // none while it is parked
    std::span<std::byte> staged;
    bool told = false;      // that it is parked
    bool answered = false;  // where it goes
  };
  using Arrivals = std::map<std::uint32_t, Incoming>;

  core::Status hear(const AuxRequest& request);
  void want(int peer, std::uint32_t flow);
  void give_up(std::uint32_t flow);
  core::Status sent(std::uint32_t id);
  core::Status arrive(const AuxRequest& request);
  core::Status received(std::uint32_t id);
  void flow_ended(const AuxRequest& request);
  bool forget(int peer);

  core::Result<bool> grant_wants();
  core::Result<bool> grant(Want& want);
  bool take(Want& want);
  core::Result<bool> assign(Want& want);
  void assign(Want& want, std::span<std::byte> staged);
  void admit_arrivals();
  void admit(Arrivals::value_type& entry);
  bool ask(Arrivals::value_type& entry);
  [[nodiscard]] core::Status fits_somewhere(const Arrival& arrival, std::uint64_t bytes) const;
  [[nodiscard]] bool is_in_arena(const Arrival& arrival, std::uint64_t bytes) const;
  void deliver(const Incoming& incoming);
  void answer(Arrivals::value_type& entry, AuxAnswer::Kind kind, std::span<const std::byte> place);

  void post(const AuxAnswer& answer);
  void flush();
  void ring();

  const Arena& arena_;
  const FileDescriptor bell_;
  ChunkWork& work_;
  RingReader<AuxRequest> requests_;
  RingWriter<AuxAnswer> answers_;
  ArenaHeap leaving_;
  ArenaHeap coming_;
  const std::size_t largest_;  // that a direction can stage

  AuxSeats seats_;

  bool unheard_ = false;  // the auxiliary sleeps, and has not been woken for what was said
  std::uint64_t heard_ = 0;
  std::uint32_t last_chunk_ = 0;
  std::vector<Want> wants_;
  std::map<std::uint32_t, Outgoing> outgoing_;
  Arrivals incoming_;
};

}  // namespace fasthorovod::transport
