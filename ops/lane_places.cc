#include "ops/lane_places.h"

#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/mixer.h"
#include "transport/mpi_lane.h"
#include "transport/thread_lane.h"

namespace fasthorovod::ops {
namespace {

using Places = std::vector<std::unique_ptr<transport::LanePlace>>;

std::uint64_t mark_of(const core::World& world) {
  core::Mixer mixer;
  for (const std::byte byte : world.job) mixer.add(std::to_integer<std::uint64_t>(byte));
  mixer.add(world.epoch);
  return mixer.value();
}

}  // namespace

core::Result<transport::MpiProcess*> reach_data_plane(const core::Config& config) {
  if (config.data_plane == core::DataPlane::kTcp || config.size == 1) return nullptr;
  auto process = transport::MpiProcess::enter(config, core::Clock::now() + config.start_timeout);
  if (!process) return process;
  if (auto blocks = (*process)->blocks(); !blocks) return std::move(blocks).error();
  return process;
}

std::shared_ptr<transport::RateBoard> make_rate_board(const core::LanePlan& plan) {
  std::optional<int> first;
  if (plan.measures_flows) first = core::kUsualFlows * plan.lanes;
  return std::make_shared<transport::RateBoard>(first);
}

core::Result<Places> start_lanes(const core::LanePlan& plan, transport::ChunkWork& work,
                                 std::shared_ptr<transport::RateBoard> rates) {
  const transport::LaneOptions options{.rates = std::move(rates)};
  Places places;
  for (int lane = plan.auxiliaries; lane < plan.lanes; ++lane) {
    auto place = transport::ThreadLane::start(options, work);
    if (!place) return std::move(place).error();
    places.push_back(std::move(*place));
  }
  return places;
}

core::Result<Places> start_mpi_lane(const core::World& world, transport::MpiProcess& mpi,
                                    transport::ChunkWork& work, std::function<bool()> busy) {
  auto blocks = mpi.blocks();
  if (!blocks) return std::move(blocks).error();
  const transport::MpiLaneOptions options{
      .rank = world.rank, .size = world.size, .mark = mark_of(world), .busy = std::move(busy)};
  Places places;
  places.push_back(std::make_unique<transport::MpiLane>(
      options, **blocks, work,
      [&mpi](std::vector<transport::MpiBlockOnItsWay> left) { mpi.keep(std::move(left)); }));
  return places;
}

}  // namespace fasthorovod::ops
