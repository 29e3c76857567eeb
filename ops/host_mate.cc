#include "ops/host_mate.h"

namespace fasthorovod::ops {

HostMate::HostMate(const HostSeat& seat) : seat_(seat), table_(seat.arena) {}

void HostMate::begin_next() {
  state_ = State::kAbsent;
  searched_ = std::numeric_limits<std::uint64_t>::max();
}

// Where it was the last time is where it often is again, and saves a search.
std::optional<HostSighting> HostMate::find(const HostKey& key) {
  if (sighting_.entry != nullptr) {
    if (auto sighting = HostTable::find_in(*sighting_.entry, key)) return sighting;
  }
  const std::uint64_t publications = table_.publications();
  if (publications == searched_) return std::nullopt;
  searched_ = publications;
  return table_.find(key);
}

HostMate::State HostMate::look(const HostKey& key, std::uint32_t fingerprint,
                               const HostLayout& layout) {
  if (state_ == State::kGone || state_ == State::kFailed) return state_;
  if (state_ == State::kAbsent) {
    const std::optional<HostSighting> sighting = find(key);
    if (!sighting) return state_;
    sighting_ = *sighting;
    state_ = first_state(fingerprint, layout);
  }
  const HostSighting::Now now = sighting_.now();
  if (now == HostSighting::Now::kFailed) state_ = State::kFailed;
  // Only who agreed with this rank can have finished.
  if (now == HostSighting::Now::kGone)
    state_ = state_ == State::kHere ? State::kGone : State::kFailed;
  return state_;
}

HostMate::State HostMate::first_state(std::uint32_t fingerprint, const HostLayout& layout) const {
  const std::uint64_t arena_bytes = seat_.arena.size();
  const std::uint64_t area_bytes = layout.area_bytes();
  if (sighting_.failed) return State::kFailed;
  const bool fits = area_bytes <= arena_bytes && sighting_.area <= arena_bytes - area_bytes &&
                    sighting_.loan.fits(layout.bytes, arena_bytes);
  return sighting_.fingerprint == fingerprint && fits ? State::kHere : State::kOther;
}

// Who fails says so before its caller has the memory back; the fence keeps the readings before the
// look.
bool HostMate::still_lends() const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  return sighting_.now() == HostSighting::Now::kRunning;
}

bool HostMate::reached(std::atomic<std::uint32_t> HostSlot::*counter, std::uint32_t piece,
                       std::uint32_t slots) const {
  if (state_ == State::kGone) return true;
  if (state_ != State::kHere) return false;
  return (sighting_.entry->slots[piece % slots].*counter).load() > piece;
}

}  // namespace fasthorovod::ops
