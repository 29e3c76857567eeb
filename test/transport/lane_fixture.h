// A lane with a FakeChunkWork, as one rank of a test. Where the lane runs is up to the program: the
// same tests are linked with make_place() of lane_in_thread.cc or of lane_in_auxiliary.cc.
#pragma once

#include <memory>

#include "test/transport/fake_chunk_work.h"
#include "test/transport/socket_pair.h"
#include "transport/lane_place.h"

namespace fasthorovod::transport {

std::unique_ptr<LanePlace> make_place(const LaneOptions& options, ChunkWork& work);

class LaneNode final {
 public:
  explicit LaneNode(const LaneOptions& options = {}) : lane_(make_place(options, work)) {}
  LaneNode(const LaneNode&) = delete;
  LaneNode& operator=(const LaneNode&) = delete;

  /// Returns when every flow is closed.
  void stop() { lane_->stop(); }
  void send(int peer, std::uint64_t sequence, std::uint32_t transfer, std::size_t size,
            FakeChunkWork::Mode mode) {
    work.queue(peer, sequence, transfer, size, mode);
    lane_->wake();
  }
  LanePlace& lane() { return *lane_; }

  FakeChunkWork work;

 private:
  const std::unique_ptr<LanePlace> lane_;
};

/// Joins two nodes by `count` flows.
inline void join(LaneNode& a, int rank_a, LaneNode& b, int rank_b, SocketKind kind, int count,
                 int buffer_bytes = 0) {
  for (int i = 0; i < count; ++i) {
    auto pair = connected_pair(kind, buffer_bytes);
    a.lane().add_flow(rank_b, std::move(pair.first));
    b.lane().add_flow(rank_a, std::move(pair.second));
  }
}

/// A flow whose other end the test holds itself.
inline FileDescriptor raw_flow(LaneNode& node, int peer, SocketKind kind, int buffer_bytes = 0) {
  auto pair = connected_pair(kind, buffer_bytes);
  node.lane().add_flow(peer, std::move(pair.first));
  return std::move(pair.second);
}

/// A frame as it goes over the wire.
std::vector<std::byte> frame(std::uint64_t sequence, std::uint32_t transfer, std::size_t size,
                             FakeChunkWork::Mode mode);

}  // namespace fasthorovod::transport
