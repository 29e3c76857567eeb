// A lane as its engine sees it, wherever its loop runs: in a thread of this process, or in an
// auxiliary process. The same lane (lane.h) and the same ChunkWork, seen from outside.
//
// A thread that waits for what the lane does may take its loop over, where the place allows it, and
// make the turns itself: then no other thread has to wake for a message.
//
// Thread: any.
#pragma once

#include <chrono>

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

  /// Takes the loop over for the calling thread. False: it can not be had now, or never.
  [[nodiscard]] virtual bool try_take() { return false; }
  /// A turn by who has it, waiting at most `timeout`. False: nothing happened.
  virtual bool step(std::chrono::milliseconds /*timeout*/) { return false; }
  /// True: who has it must give it back at once; wake() follows.
  [[nodiscard]] virtual bool stopping() const { return false; }
  /// Gives it back. `at_once`: there is work that others wait for. Else its thread may leave it
  /// alone for a millisecond or two, in case it is taken again, unless wake() is called.
  virtual void give_back(bool /*at_once*/) {}

  [[nodiscard]] virtual LaneStatistics statistics() const = 0;
};

}  // namespace fasthorovod::transport
