#include "test/ops/threaded_boards.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace fasthorovod::ops {

using transport::Arrival;

ThreadedBoards::ThreadedBoards() {
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes_.emplace_back([this, rank, lane] { run_lane(rank, lane); });
    }
  }
}

void ThreadedBoards::stop() {
  stop_ = true;
  for (Node& node : nodes_) node.bell.ring();
  lanes_.clear();
}

bool ThreadedBoards::send_one(int rank, int peer, int lane) {
  ChunkBoard& board = node(rank).board;
  auto chunk = board.take(peer);
  if (!chunk) return false;
  if (lane == 0) board.join_next(peer, *chunk, std::numeric_limits<std::uint64_t>::max());
  queue(rank, peer, lane).push({chunk->header, {chunk->payload.begin(), chunk->payload.end()}});
  board.sent(chunk->ticket);
  node(peer).bell.ring();
  return true;
}

bool ThreadedBoards::receive_one(int rank, int peer, int lane) {
  ChunkBoard& board = node(rank).board;
  std::optional<Frame>& parked = node(rank).parked[index(peer) * kLanes + index(lane)];
  std::optional<Frame> frame = std::exchange(parked, std::nullopt);
  if (!frame) frame = queue(peer, rank, lane).pop();
  if (!frame) return false;
  const core::Result<Arrival> arrival = board.arrive(peer, frame->header);
  if (!arrival) {
    ADD_FAILURE() << arrival.error().message;
    return false;
  }
  if (arrival->kind == Arrival::Kind::kPark) {
    parked = std::move(frame);
    return false;
  }
  if (arrival->kind == Arrival::Kind::kAbsorb) {
    board.absorb(arrival->ticket, 0, frame->payload);
  } else if (!frame->payload.empty()) {
    std::memcpy(arrival->into.data(), frame->payload.data(), frame->payload.size());
  }
  board.received(arrival->ticket);
  return true;
}

void ThreadedBoards::run_lane(int rank, int lane) {
  Bell& bell = node(rank).bell;
  while (!stop_) {
    const std::uint64_t seen = bell.rings();
    bool moved = false;
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      moved |= send_one(rank, peer, lane);
      moved |= receive_one(rank, peer, lane);
    }
    if (!moved && !stop_) bell.wait_beyond(seen);
  }
}

}  // namespace fasthorovod::ops
