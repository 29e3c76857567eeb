// A lane as its engine sees it, wherever its loop runs: in a thread of this process, or in an
// auxiliary process. The same lane (lane.h) and the same ChunkWork, seen from outside.
//
// Thread: any.
#pragma once

#include "transport/file_descriptor.h"
#include "transport/lane.h"

namespace fasthorovod::transport {

class LanePlace {
 public:
  /// Stops.
  virtual ~LanePlace() = default;

  /// Hands over a connected, authenticated stream socket to `peer`. After stop() it is just closed.
  virtual void add_flow(int peer, FileDescriptor socket) = 0;

  /// Chunks may go to `peer` from now on: for places that need no socket for that.
  virtual void add_peer(int /*peer*/) {}

  /// Something became runnable, or startable for a parked flow.
  virtual void wake() = 0;

  /// Asks it to stop, so that several can do so at once; stop() waits.
  virtual void begin_stop() {}

  /// For good: closes every flow in good order. When it has returned, this lane touches neither the
  /// ChunkWork nor memory that was lent to it. Idempotent.
  virtual void stop() = 0;

  [[nodiscard]] virtual LaneStatistics statistics() const = 0;
};

}  // namespace fasthorovod::transport
