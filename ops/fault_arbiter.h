// Turns the faults that ranks see into one verdict that all ranks share.
//
// A lost rank is seen by its neighbours, by those who wait for them, and by rank 0, in any order.
// Whoever sees something tells rank 0; the first fault rank 0 hears of is the verdict, which it
// tells everybody, so that all name the same culprit. A rank that gets no verdict in time (rank 0
// itself is gone or stopped) concludes by itself.
//
// A stall is different: in a ring everybody waits for a neighbour, who only waits too. Rank 0 calls
// the roll, and whoever does not answer is the culprit. When all answer, an operation that is stuck
// (it names whom it waits for) fails all the same; a tensor that some rank did not submit is left
// to the coordinator, which fails that tensor alone.
//
// Thread: owner (the engine thread).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "core/clock.h"
#include "core/control_message.h"
#include "core/result.h"
#include "core/world.h"

namespace fasthorovod::ops {

class FaultArbiter final {
 public:
  /// How long a rank waits for the verdict on a fault it reported.
  static constexpr std::chrono::milliseconds kVerdictWait{500};
  /// How long rank 0 may take to say that a rank whose flows ended has left in good order.
  static constexpr std::chrono::milliseconds kDepartureWait{300};
  /// How long rank 0 may take to call the roll when a rank reports a stall.
  static constexpr std::chrono::milliseconds kSilenceWait{2000};
  /// How long a rank that is alive may take to answer the roll call.
  static constexpr std::chrono::milliseconds kRollCallWait{1000};

  struct Hooks {
    std::function<core::Status(int rank, const core::ControlMessage& message)> send;
    std::function<void(core::Duration delay, std::function<void()> function)> call_after;
    /// A rank is gone, and rank 0, which would say how, has left before.
    std::function<void(const core::Error& error)> unannounced;
    std::function<void(const core::Error& verdict)> conclude;  // exactly once, or never
  };

  FaultArbiter(const core::World& world, Hooks hooks);

  /// This rank saw a fault, or, on rank 0, another rank reported one.
  void fault(core::Error error);

  /// The flows to the culprit ended, though something needs it. When it died, rank 0 sees that too,
  /// and its verdict comes; when it left in good order, left() is called. Only when neither
  /// happens is it a fault of its own. After rank 0 has left, it is taken for a departure.
  void lost(core::Error error);

  /// A rank has left in good order: the end of its connections is no fault, and it answers no roll
  /// call.
  void left(int rank) { left_.insert(rank); }
  [[nodiscard]] bool has_left(int rank) const { return left_.contains(rank); }

  /// The control connection to rank 0 is gone: nobody is left to ask. Not on rank 0.
  void coordinator_lost(const core::Error& error) { conclude(error); }

  /// Rank 0's verdict came.
  void verdict(const core::Error& error);

  /// Rank 0 calls the roll, so it is there, and deals with what this rank may have reported.
  void roll_called() { ++reports_; }

  /// Rank 0: a rank answered the roll call.
  void present(int rank);

  /// From now on faults are no news: this rank leaves.
  void retire() { retired_ = true; }

  [[nodiscard]] bool concluded() const { return concluded_; }

 private:
  void judge(const core::Error& error);
  void report(const core::Error& error);
  void call_roll(core::Error error);
  void end_roll_call(const core::Error& error);
  void conclude(const core::Error& error);
  void broadcast(const core::ControlMessage& message);

  const core::World& world_;
  const Hooks hooks_;
  bool concluded_ = false;
  bool retired_ = false;
  bool reported_ = false;                 // a loss was reported, its verdict is awaited
  std::uint64_t reports_ = 0;             // stalls that rank 0 has dealt with
  std::optional<std::uint64_t> awaited_;  // the stall that it has not
  std::set<int> left_;
  std::optional<std::set<int>> silent_;  // rank 0, during a roll call: who has not answered
};

}  // namespace fasthorovod::ops
