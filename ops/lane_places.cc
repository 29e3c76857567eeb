#include "ops/lane_places.h"

#include <utility>

#include "transport/thread_lane.h"

namespace fasthorovod::ops {

core::Result<std::vector<std::unique_ptr<transport::LanePlace>>> start_lanes(
    const core::LanePlan& plan, transport::ChunkWork& work) {
  const transport::LaneOptions options{.rates = std::make_shared<transport::RateBoard>()};
  std::vector<std::unique_ptr<transport::LanePlace>> places;
  for (int lane = plan.auxiliaries; lane < plan.lanes; ++lane) {
    auto place = transport::ThreadLane::start(options, work);
    if (!place) return std::move(place).error();
    places.push_back(std::move(*place));
  }
  return places;
}

}  // namespace fasthorovod::ops
