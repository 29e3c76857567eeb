#include "transport/lane_set.h"

#include <utility>

namespace fasthorovod::transport {

void LaneSet::add_flow(int peer, std::uint32_t index, FileDescriptor socket) {
  lanes_[index % lanes_.size()]->add_flow(peer, std::move(socket));
}

void LaneSet::add_peer(int peer) {
  for (const auto& lane : lanes_) lane->add_peer(peer);
}

void LaneSet::wake() {
  for (const auto& lane : lanes_) lane->wake();
}

// All are asked before the first is waited for: each may wait for its peers to acknowledge.
void LaneSet::stop() {
  for (const auto& lane : lanes_) lane->begin_stop();
  for (const auto& lane : lanes_) lane->stop();
}

LaneStatistics LaneSet::statistics() const {
  LaneStatistics sum;
  for (const auto& lane : lanes_) {
    const LaneStatistics one = lane->statistics();
    sum.bytes_sent += one.bytes_sent;
    sum.bytes_received += one.bytes_received;
    sum.chunks_sent += one.chunks_sent;
    sum.chunks_received += one.chunks_received;
    sum.turns += one.turns;
  }
  return sum;
}

}  // namespace fasthorovod::transport
