#include "ops/peer_table.h"

#include <utility>

namespace fasthorovod::ops {

template <typename OnePeer>
auto* PeerTable::queue_of(OnePeer& peer, transport::TakeOrder order) {
  if (!peer.urgent.empty()) return &peer.urgent;
  if (peer.ready.empty() && peer.fresh.empty()) return decltype(&peer.ready){nullptr};
  if (peer.ready.empty()) return &peer.fresh;
  if (peer.fresh.empty()) return &peer.ready;
  const bool is_older = peer.fresh.front().number < peer.ready.front().number;
  return order == transport::TakeOrder::kFreshFirst || is_older ? &peer.fresh : &peer.ready;
}

std::optional<transport::ChunkTicket> PeerTable::pop(int peer, transport::TakeOrder order) {
  const auto found = peers_.find(peer);
  auto* const queue = found == peers_.end() ? nullptr : queue_of(found->second, order);
  if (queue == nullptr) return std::nullopt;
  const transport::ChunkTicket send = queue->front().send;
  queue->pop_front();
  return send;
}

std::optional<transport::ChunkTicket> PeerTable::next(int peer, transport::TakeOrder order) const {
  const auto found = peers_.find(peer);
  const auto* const queue = found == peers_.end() ? nullptr : queue_of(found->second, order);
  if (queue == nullptr) return std::nullopt;
  return queue->front().send;
}

bool PeerTable::has_ready(int peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && queue_of(found->second, transport::TakeOrder::kOldest) != nullptr;
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
    peer.fresh.clear();
  }
}

}  // namespace fasthorovod::ops
