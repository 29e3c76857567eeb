#include "transport/thread_lane.h"

#include <utility>

namespace fasthorovod::transport {

core::Result<std::unique_ptr<ThreadLane>> ThreadLane::start(const LaneOptions& options,
                                                            ChunkWork& work) {
  auto lane = Lane::create(options, work);
  if (!lane) return std::move(lane).error();
  return std::unique_ptr<ThreadLane>(new ThreadLane(std::move(*lane)));
}

ThreadLane::ThreadLane(std::unique_ptr<Lane> lane)
    : lane_(std::move(lane)), thread_([this] { lane_->run(); }) {}

ThreadLane::~ThreadLane() { stop(); }

void ThreadLane::add_flow(int peer, FileDescriptor socket) {
  lane_->add_flow(peer, std::move(socket));
}

void ThreadLane::wake() { lane_->wake(); }

void ThreadLane::begin_stop() { lane_->stop(); }

void ThreadLane::stop() {
  lane_->stop();
  if (thread_.joinable()) thread_.join();
}

LaneStatistics ThreadLane::statistics() const { return lane_->statistics(); }

}  // namespace fasthorovod::transport
