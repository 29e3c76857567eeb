// Who takes part in negotiation right now: a rank is active, has joined (no more data until
// everybody joined) or has left (shut down in good order). Thread: owner.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace fasthorovod::core {

class Membership final {
 public:
  explicit Membership(int size) : states_(static_cast<std::size_t>(size)), active_(size) {}

  [[nodiscard]] int size() const { return static_cast<int>(states_.size()); }
  [[nodiscard]] int active_count() const { return active_; }
  [[nodiscard]] bool is_active(int rank) const { return state(rank) == State::kActive; }
  [[nodiscard]] bool has_joined(int rank) const { return state(rank) == State::kJoined; }
  [[nodiscard]] bool has_left(int rank) const { return state(rank) == State::kLeft; }
  [[nodiscard]] bool any_joined() const { return last_joined_.has_value(); }

  /// The rank that left first, if one did.
  [[nodiscard]] std::optional<int> first_left() const { return first_left_; }
  /// The rank that joined last, since the last reset.
  [[nodiscard]] std::optional<int> last_joined() const { return last_joined_; }

  void join(int rank);   // of an active rank
  void leave(int rank);  // of one that has not left

  /// Ends the join: those who joined are active again.
  void reset_joined();

 private:
  enum class State { kActive, kJoined, kLeft };

  [[nodiscard]] State state(int rank) const { return states_[static_cast<std::size_t>(rank)]; }

  std::vector<State> states_;
  int active_;
  std::optional<int> first_left_;
  std::optional<int> last_joined_;
};

}  // namespace fasthorovod::core
