#include "ops/piece_gates.h"

#include <algorithm>

namespace fasthorovod::ops {

PieceGates::PieceGates(const Schedule& schedule) : left_(schedule.pieces, 1) {
  if (left_.empty()) return;
  open_ = 0;
  free_at_peer_ = schedule.slots;
  for (const Send& send : schedule.sends) ++left_[send.piece];
  for (const Receive& receive : schedule.receives) ++left_[receive.piece];
}

PieceGates::Range PieceGates::open(std::uint32_t count) {
  if (left_.empty() || count <= open_) return {};
  const std::uint32_t first = open_;
  open_ = std::min(count, this->count());
  return {first, open_};
}

}  // namespace fasthorovod::ops
