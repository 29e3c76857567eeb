#include "test/transport/lane_fixture.h"
#include "transport/thread_lane.h"

namespace fasthorovod::transport {

std::unique_ptr<LanePlace> make_place(const LaneOptions& options, ChunkWork& work) {
  return std::move(ThreadLane::start(options, work)).value();
}

}  // namespace fasthorovod::transport
