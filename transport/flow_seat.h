// The place of one flow among those to its peer, as its lane sees it: whether it is in use, which
// chunks it leaves to faster ones, and what the others are told of it. Who decides that sits where
// the chunks are: in the same process (local_seat.h), or in the rank of an auxiliary
// (remote_seat.h).
//
// Thread: owner (the lane).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/clock.h"
#include "transport/chunk_work.h"

namespace fasthorovod::transport {

class FlowSeat {
 public:
  /// The flow carries nothing any more.
  virtual ~FlowSeat() = default;

  /// It is to carry chunks.
  [[nodiscard]] virtual bool in_use() const = 0;

  /// `rate` and `last_busy` as of FlowRate, `held` as of FlowSender; when it could take a chunk.
  virtual void tell(double rate, core::TimePoint last_busy, std::uint64_t held) = 0;
  /// Asked when it could take a chunk: the next one is another's. It is asked again soon.
  [[nodiscard]] virtual bool leaves_next() = 0;
  /// As ChunkWork::take(), for this flow.
  virtual std::optional<OutgoingChunk> take(TakeOrder order) = 0;
  /// It will take another chunk once those that it took have left. A hint.
  virtual void ask_ahead() {}

  /// As of GoodputMeter: it takes a chunk; there is no work for the peer.
  virtual void look(core::TimePoint now, std::uint64_t drained, bool dry) = 0;
  virtual void rest(core::TimePoint now) = 0;

  /// It can not send any more, and takes no other's place from now on. Idempotent.
  virtual void give_up() = 0;
};

/// Gives a flow to `peer` its seat. `number`: as whoever handed the flow over calls it.
using SeatMaker = std::function<std::unique_ptr<FlowSeat>(int peer, std::uint32_t number)>;

}  // namespace fasthorovod::transport
