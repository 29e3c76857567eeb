#include "ops/peer_table.h"

#include <utility>

namespace fasthorovod::ops {

std::optional<transport::ChunkTicket> PeerTable::pop(int peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return std::nullopt;
  auto& queue = found->second.urgent.empty() ? found->second.ready : found->second.urgent;
  if (queue.empty()) return std::nullopt;
  const transport::ChunkTicket send = queue.front();
  queue.pop_front();
  return send;
}

std::optional<transport::ChunkTicket> PeerTable::next(int peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return std::nullopt;
  const auto& queue = found->second.urgent.empty() ? found->second.ready : found->second.urgent;
  if (queue.empty()) return std::nullopt;
  return queue.front();
}

bool PeerTable::has_ready(int peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && !(found->second.urgent.empty() && found->second.ready.empty());
}

void PeerTable::mark_left(int peer, core::Error words) {
  std::optional<core::Error>& left = peers_[peer].left;
  if (!left) left = std::move(words);
}

const core::Error* PeerTable::left(int peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.left) return nullptr;
  return &*found->second.left;
}

void PeerTable::mark_gone(int peer, core::Error cause) {
  std::optional<core::Error>& gone = peers_[peer].gone;
  if (!gone) gone = std::move(cause);
}

const core::Error* PeerTable::gone(int peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.gone) return nullptr;
  return &*found->second.gone;
}

void PeerTable::drop_ready() {
  for (auto& [rank, peer] : peers_) {
    peer.urgent.clear();
    peer.ready.clear();
  }
}

}  // namespace fasthorovod::ops
