// The lanes' protocol for sleeping and waking, with a guard that leaves chunks, as a model: every
// step that is one atomic access is one step here, and all interleavings of two lanes, a poster and
// the kernels' making room are walked. Where nothing can move any more, nothing may be left.
//
// Two mistakes show that the walk would find what it looks for.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace fasthorovod::transport {
namespace {

constexpr int kLanes = 2;
constexpr int kChunks = 2;
constexpr int kPatience = 1;  // how often in a row a guard may leave a chunk

enum class Step : std::uint8_t { kTurn, kLook, kTake, kSetIdle, kLookAgain, kWait };
enum class Timeout : std::uint8_t { kNone, kSoon, kForever };

struct LaneState {
  Step step = Step::kTurn;
  bool woken = false;  // shared: wake() sets it
  bool idle = false;   // shared
  bool bell = false;   // shared: the eventfd
  bool was_woken = false;
  bool moved = false;
  bool left = false;
  bool room = true;      // its flow takes a chunk
  bool watches = false;  // epoll watches for room
  int patience = kPatience;
  Timeout timeout = Timeout::kNone;
  friend auto operator<=>(const LaneState&, const LaneState&) = default;
};

struct State {
  std::array<LaneState, kLanes> lanes;
  int queued = 0;
  int taken = 0;
  int posted = 0;
  int waking = -1;  // the lane that the poster wakes just now; -1: it posts next
  bool rings = false;
  friend auto operator<=>(const State&, const State&) = default;
};

struct Rules {
  bool looks_again = true;  // at woken, after idle is set
  bool asks_again = true;   // soon, after its guard left a chunk
  bool wakes_all = true;
};

class Walk final {
 public:
  explicit Walk(const Rules& rules) : rules_(rules) {}

  /// States in which nothing moves any more though chunks are left.
  int stuck() {
    add({});
    while (!open_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      const std::size_t before = steps_;
      post(state);
      for (int lane = 0; lane < kLanes; ++lane) {
        run(state, lane);
        make_room(state, lane);
      }
      if (steps_ == before && state.taken < kChunks) ++stuck_;
      EXPECT_EQ(state.taken + state.queued, state.posted) << "a chunk was lost or taken twice";
    }
    return stuck_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  void add(const State& state) {
    ++steps_;
    if (seen_.insert(state).second) open_.push_back(state);
  }

  // push; then for each lane wake(): exchange woken, and if it was not set look at idle and ring.
  void post(State state) {
    if (state.waking < 0) {
      if (state.posted == kChunks) return;
      ++state.posted;
      ++state.queued;
      if (rules_.wakes_all) return start_wake(state, 0);
      for (int lane = 0; lane < kLanes; ++lane) start_wake(state, lane);
      return;
    }
    LaneState& lane = state.lanes.at(static_cast<std::size_t>(state.waking));
    if (!state.rings) {
      state.rings = !lane.woken;
      lane.woken = true;
      if (state.rings) return add(state);
    } else if (lane.idle) {
      lane.bell = true;
    }
    const int next = state.waking + 1;
    if (rules_.wakes_all && next < kLanes) return start_wake(state, next);
    start_wake(state, -1);
  }
  void start_wake(State state, int lane) {
    state.waking = lane;
    state.rings = false;
    add(state);
  }

  void make_room(State state, int index) {
    LaneState& lane = state.lanes.at(static_cast<std::size_t>(index));
    if (lane.room) return;
    lane.room = true;
    add(state);
  }

  void run(State state, int index) {
    LaneState& lane = state.lanes.at(static_cast<std::size_t>(index));
    switch (lane.step) {
      case Step::kTurn:
        lane.was_woken = lane.woken;
        lane.woken = lane.moved = lane.left = lane.watches = false;
        lane.step = Step::kLook;
        return add(state);
      case Step::kLook:
        return look(state, lane);
      case Step::kTake:  // the board's lock decides, whatever was seen before
        if (state.queued > 0) {
          --state.queued;
          ++state.taken;
          lane.moved = true;
          lane.room = false;
          lane.patience = kPatience;
        }
        return decide(state, lane);
      case Step::kSetIdle:
        lane.idle = true;
        lane.step = Step::kLookAgain;
        return add(state);
      case Step::kLookAgain:
        if (rules_.looks_again && lane.woken) lane.timeout = Timeout::kNone;
        lane.step = Step::kWait;
        return add(state);
      case Step::kWait:
        return wait(state, lane);
    }
  }

  // Lane 0 is slow, so its guard may leave the chunk to lane 1; nobody says when.
  void look(State& state, LaneState& lane) {
    const LaneState before = lane;
    if (state.queued == 0) return decide(state, lane);
    if (!lane.room) {
      lane.watches = true;
      return decide(state, lane);
    }
    if (&lane == &state.lanes[0] && lane.patience > 0) {
      --lane.patience;
      lane.left = true;
      decide(state, lane);
      lane = before;
    }
    lane.step = Step::kTake;
    add(state);
  }

  void decide(const State& state, LaneState& lane) {
    lane.timeout = Timeout::kForever;
    if (lane.left && rules_.asks_again) lane.timeout = Timeout::kSoon;
    if (lane.moved || lane.was_woken) lane.timeout = Timeout::kNone;
    lane.step = Step::kSetIdle;
    add(state);
  }

  void wait(const State& state, LaneState& lane) {
    const bool returns =
        lane.timeout != Timeout::kForever || lane.bell || (lane.watches && lane.room);
    if (!returns) return;
    lane.bell = lane.idle = false;
    lane.step = Step::kTurn;
    add(state);
  }

  const Rules rules_;
  std::set<State> seen_;
  std::vector<State> open_;
  std::size_t steps_ = 0;
  int stuck_ = 0;
};

TEST(LaneModel, LosesNoWakeUpAndNoChunk) {
  Walk walk({});
  EXPECT_EQ(walk.stuck(), 0);
  EXPECT_GT(walk.states(), 2'000U);
}

// A wake-up that goes to one lane only may be eaten by one whose guard leaves the chunk, unless
// that one asks again by itself.
TEST(LaneModel, NeedsAGuardThatAsksAgain) {
  EXPECT_EQ(Walk({.wakes_all = false}).stuck(), 0);
  EXPECT_GT(Walk({.asks_again = false, .wakes_all = false}).stuck(), 0);
}

TEST(LaneModel, NeedsTheSecondLookBeforeSleep) {
  EXPECT_GT(Walk({.looks_again = false}).stuck(), 0);
}

}  // namespace
}  // namespace fasthorovod::transport
