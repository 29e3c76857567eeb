// A wire between two lanes that the test shapes: a thread carries bytes from one socket to another,
// in pieces whose sizes come from a seed, and as fast as its shape lets it.
//
// Shapes know no clock: a slow wire may carry a fraction of what the fast ones have, so a test's
// result does not depend on how busy the machine is. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "transport/file_descriptor.h"
#include "transport/lane_place.h"

namespace fasthorovod::transport {

/// What all wires of a test share.
struct WireTraffic {
  std::atomic<std::uint64_t> fast_bytes{0};  // carried by wires that are not slow
};

struct WireShape {
  std::uint32_t seed = 1;
  int slower = 1;  // carries at most one byte for so many of the fast wires
};

class ShapedRelay final {
 public:
  ShapedRelay(FileDescriptor from, FileDescriptor to, WireShape shape, WireTraffic& traffic);
  /// Stops carrying, whatever is under way; both ends see the connection end.
  ~ShapedRelay();
  ShapedRelay(const ShapedRelay&) = delete;
  ShapedRelay& operator=(const ShapedRelay&) = delete;

  /// Stands still until told otherwise.
  void stall(bool stalled) { stalled_.store(stalled); }
  [[nodiscard]] std::uint64_t carried() const { return carried_.load(); }

 private:
  void carry();
  [[nodiscard]] std::size_t allowed() const;

  const FileDescriptor from_;
  const FileDescriptor to_;
  const WireShape shape_;
  WireTraffic& traffic_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<std::uint64_t> carried_{0};
  std::thread thread_;
};

/// A flow from one lane to another over a shaped wire. What comes back is not shaped: nothing does.
std::unique_ptr<ShapedRelay> join_shaped(LanePlace& from, int from_rank, LanePlace& to, int to_rank,
                                         WireShape shape, WireTraffic& traffic);

}  // namespace fasthorovod::transport
