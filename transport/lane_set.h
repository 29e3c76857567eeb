// The lanes of one rank, wherever each of them runs.
//
// All ask the same ChunkWork, so whatever makes a chunk runnable, or startable for a parked flow,
// wakes them all: the one that can carry it may be any of them.
//
// Thread: any; stop() not from a lane's own thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/lane_place.h"

namespace fasthorovod::transport {

class LaneSet final {
 public:
  /// At least one lane.
  explicit LaneSet(std::vector<std::unique_ptr<LanePlace>> lanes) : lanes_(std::move(lanes)) {}
  ~LaneSet() { stop(); }
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  /// Hands over the flow to `peer` of that index: to lane index mod size.
  void add_flow(int peer, std::uint32_t index, FileDescriptor socket);

  /// For lanes that need no flow to send to `peer`.
  void add_peer(int peer);

  void wake();

  /// As of the lane, where there is one only; several are not to be had.
  [[nodiscard]] bool try_take() { return lanes_.size() == 1 && lanes_.front()->try_take(); }
  bool step(std::chrono::milliseconds timeout) { return lanes_.front()->step(timeout); }
  [[nodiscard]] bool stopping() const { return lanes_.front()->stopping(); }
  void give_back(bool at_once) { lanes_.front()->give_back(at_once); }

  /// When it has returned, no lane touches the ChunkWork or memory that was lent. Idempotent.
  void stop();

  /// The sums over all lanes.
  [[nodiscard]] LaneStatistics statistics() const;

  [[nodiscard]] std::size_t size() const { return lanes_.size(); }

 private:
  const std::vector<std::unique_ptr<LanePlace>> lanes_;
};

}  // namespace fasthorovod::transport
