#include "core/membership.h"

namespace fasthorovod::core {

void Membership::join(int rank) {
  states_[static_cast<std::size_t>(rank)] = State::kJoined;
  --active_;
  last_joined_ = rank;
}

void Membership::leave(int rank) {
  if (is_active(rank)) --active_;
  states_[static_cast<std::size_t>(rank)] = State::kLeft;
  if (!first_left_) first_left_ = rank;
}

void Membership::reset_joined() {
  for (State& state : states_) {
    if (state != State::kJoined) continue;
    state = State::kActive;
    ++active_;
  }
  last_joined_.reset();
}

}  // namespace fasthorovod::core
