// The gates of one operation's pieces: which may move here, and what is left of each. Without gates
// every piece is open, and nothing is counted. Pure bookkeeping. Thread: the ChunkBoard's lock
// guards it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ops/schedule.h"

namespace fasthorovod::ops {

class PieceGates final {
 public:
  explicit PieceGates(const Schedule& schedule);

  [[nodiscard]] bool is_open(std::uint32_t piece) const { return piece < open_; }

  /// Pieces [first, last).
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  /// Pieces [0, count) are open; those that were not before.
  Range open(std::uint32_t count);

  /// How many pieces a peer takes without having said that its gates are open.
  [[nodiscard]] std::uint32_t free_at_peer() const { return free_at_peer_; }

  /// How many gates there are; 0 without.
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(left_.size()); }

  /// A transfer of the piece is complete, or its gate has opened: true when nothing is left of it.
  [[nodiscard]] bool count_down(std::uint32_t piece) {
    return !left_.empty() && --left_[piece] == 0;
  }

 private:
  static constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t open_ = kAll;
  std::uint32_t free_at_peer_ = kAll;
  std::vector<std::uint32_t> left_;  // by piece: its transfers and its gate
};

}  // namespace fasthorovod::ops
