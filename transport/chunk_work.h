// What a lane asks of the layer above: which chunk may go to a peer next, and what to do with one
// that came.
//
// A lane moves chunks and knows no collective; `ops` implements this interface. Thread: any.
// Several lanes may call at once, also for the same peer; each call is short, never blocks and
// never calls back into a lane (except wake).
//
// Contract with the lane, for one flow to `peer`:
//   Sending: take(peer), perhaps join_next(), then all payload bytes are written, then
//   sent(ticket). The payload is lent until then.
//
//   Receiving: a header is read, then arrive(peer, header), which answers
//     - kPark: not startable yet. The lane keeps the header, reads nothing more from this flow and
//       calls arrive again after the next wake(), and only then: whatever makes a parked chunk
//       startable, also a chunk that another lane received, wakes all lanes;
//     - kAsked: the same, but only until another process has answered: the flow does not end
//       meanwhile, even if sending on it failed;
//     - kInto: the lane reads the payload straight into `into`, then calls received(ticket);
//     - kAbsorb: the lane reads the payload into a scratch of the flow and hands it over with
//       absorb() in order, in pieces that are multiples of kGranule except the last one, then calls
//       received(ticket);
//     - an Error: the peer's fault. The lane closes the flow and reports it through flow_ended.
//
//   Ending: flow_ended(peer, ...) exactly once a flow, by the rule in lane.h; not for flows that
//   stop() closed.
//
// Between two calls for one chunk come calls for others: a lane serves its flows in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result.h"
#include "transport/frame.h"

namespace fasthorovod::transport {

/// Pieces handed to absorb() are multiples of this many bytes (the largest element), except the
/// last of a chunk.
inline constexpr std::size_t kGranule = 8;

/// Names a chunk, or several that were joined, in the calls that follow; chosen by ChunkWork.
struct ChunkTicket {
  std::uint64_t operation = 0;
  std::uint32_t transfer = 0;
  std::uint32_t count = 1;  // of chunks: this one and those that were joined to it
};

struct OutgoingChunk {
  FrameHeader header;  // payload_bytes is filled in by the lane
  std::span<const std::byte> payload;
  ChunkTicket ticket;
};

/// What is still to be sent to a peer, in bytes of payload.
struct Backlog {
  std::uint64_t next = 0;     // of the chunk that take() would give
  std::uint64_t untaken = 0;  // that no flow has taken yet, whether it may leave now or later
};

struct Arrival {
  enum class Kind : std::uint8_t { kPark, kInto, kAbsorb, kAsked };
  Kind kind = Kind::kPark;
  std::span<std::byte> into;  // kInto: exactly payload_bytes of the header. kAbsorb: what absorb()
                              // adds to, for lanes that may do so themselves; or empty
  ChunkTicket ticket;
  std::uint16_t how = 0;  // kAbsorb with `into`: how to add; transport does not interpret it
};

/// How a flow ended.
struct FlowEnd {
  bool clean = false;  // the peer ended it between two frames, and no chunk was lost either way
  core::Error error;   // what happened, naming the peer
};

/// Which chunk leaves next.
enum class TakeOrder : std::uint8_t {
  kOldest,      // the one that may leave for the longest time: no link runs dry near the end
  kFreshFirst,  // one of those that waited for what came: the caches still hold it
};

class ChunkWork {
 public:
  virtual ~ChunkWork() = default;

  /// Nothing although has_work(peer) is true: the lane asks again within 1 ms.
  virtual std::optional<OutgoingChunk> take(int peer, TakeOrder order) = 0;
  std::optional<OutgoingChunk> take(int peer) { return take(peer, TakeOrder::kOldest); }
  /// Joins chunks to one that was taken and not sent yet, as long as the next one that may leave to
  /// the peer goes on where it ends, and all together have at most so many bytes. They travel and
  /// come as one, under one header.
  virtual void join_next(int peer, OutgoingChunk& chunk, std::uint64_t most) = 0;
  /// True when take(peer) may have something; cheap, may be stale for an instant.
  [[nodiscard]] virtual bool has_work(int peer) const = 0;
  /// For a guard: how near the end is. All zero where nobody knows.
  [[nodiscard]] virtual Backlog backlog(int peer) const = 0;
  virtual void sent(const ChunkTicket& ticket) = 0;

  virtual core::Result<Arrival> arrive(int peer, const FrameHeader& header) = 0;
  virtual void absorb(const ChunkTicket& ticket, std::uint64_t offset,
                      std::span<const std::byte> piece) = 0;
  virtual void received(const ChunkTicket& ticket) = 0;

  virtual void flow_ended(int peer, const FlowEnd& end) = 0;

  /// The lane has nothing to do and is about to sleep: what it said has to be heard now.
  virtual void flush() {}
};

}  // namespace fasthorovod::transport
