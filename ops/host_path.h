// The way an all-reduce takes when ranks of its group share a host: inside each host through the
// ranks' arenas (HostTeam), between the hosts through the chunk board, as one operation.
//
// One owner a rank, made before the lanes run. Thread: any, unless a member says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/cost_model.h"
#include "core/result.h"
#include "core/world.h"
#include "ops/chunk_board.h"
#include "ops/host_team.h"
#include "ops/operation.h"

namespace fasthorovod::ops {

class HostPath final {
 public:
  struct Hooks {
    /// A mate believes in another operation. Not under a lock; must not block.
    std::function<void(const Disagreement&)> disagreement;
    /// start() may find room now. Not under a lock; must not block.
    std::function<void()> space;
  };

  /// `seats`, `heap` and `largest_area` as HostTeam takes them; `flows`: chunks between hosts are
  /// cut for so many. `allreduces` is the plan of the world.
  HostPath(const core::World& world, std::vector<HostSeat> seats, transport::ArenaHeap& heap,
           std::size_t largest_area, int flows, const core::AllreducePlan& allreduces,
           ChunkBoard& board, Hooks hooks);
  HostPath(const HostPath&) = delete;
  HostPath& operator=(const HostPath&) = delete;

  /// Whether the all-reduces of a group go this way: some host has several of its members (world
  /// ranks by position). The same on all of them.
  [[nodiscard]] static bool serves(const core::World& world, const std::vector<int>& members);

  /// Starts the all-reduce of `input` into operation.buffer, which are the same memory or apart;
  /// the operation brings all but a schedule, and goes early only where that may. `alone`: it is
  /// the only one of its group under way on this rank, and always finds memory. `meet` is called
  /// for each rank that it will exchange data with over the network. False, and nothing has
  /// happened: there is no shared memory for it now, and Hooks::space tells when to try again.
  [[nodiscard]] bool start(const Operation& operation, std::span<const std::byte> input, bool alone,
                           const std::function<void(int rank)>& meet);

  /// What run() did.
  enum class Run {
    kNoSpace,  // nothing: there is no shared memory for it now
    kOver,     // all of it
    kGoesOn,   // as after start()
  };
  /// Runs an all-reduce on one host in the calling thread, as far as mates keep up: then neither
  /// the board nor the team's thread hears of it, and nobody else is told. It is alone in its
  /// group, and no other thread starts anything meanwhile. `whole` makes all that start() takes,
  /// where that is needed: at the first operation of a kind, and when this one goes on, which alone
  /// takes its `done`. `wanted` and `until` as HostTeam::drive takes them; `outcome` is set when it
  /// is over.
  [[nodiscard]] Run run(const HostKind& kind, const HostCall& call,
                        const std::function<Operation()>& whole, const std::atomic<bool>& wanted,
                        core::TimePoint until, core::Status& outcome);
  /// Whether run() can do it: all members (world ranks by position) share one host.
  [[nodiscard]] static bool is_one_host(const core::World& world, const std::vector<int>& members);
  /// Wakes who is in run(), or sleeps in the place of the team's thread. Any thread.
  void nudge() { team_.nudge(); }

  /// Whose thread's place callers may take.
  [[nodiscard]] HostTeam& team() { return team_; }

  /// To be called after ChunkBoard::fail of an operation that may have gone this way.
  void fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error);

  /// Ends everything here with `error`; nobody touches callers' memory when it returns. The lanes
  /// have stopped; the board fails next. Idempotent.
  void stop(const core::Error& error) { team_.stop(error); }

  /// What the oldest operation that waits inside the host waits for.
  [[nodiscard]] std::optional<ChunkBoard::Wait> waiting() const { return team_.waiting(); }
  /// World ranks of this host that have not begun the operation.
  [[nodiscard]] std::vector<int> awaited(std::uint32_t group, std::uint64_t sequence) const {
    return team_.awaited(group, sequence);
  }
  [[nodiscard]] std::uint64_t progress() const { return team_.progress(); }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // group as on the wire, sequence

  // What is not over of an operation: its half in the host, its half on the board.
  struct Halves {
    bool inside = true;
    bool outside = true;
    core::Status status;  // of the half that ended first, unless that went well
    // On one host the board's half only listens: so many gates open when the inner half is over.
    std::uint32_t gates = 0;
    std::function<void(core::Status)> done;
  };

  HostHooks team_hooks(Hooks hooks);
  [[nodiscard]] HostLayout layout_of(const Operation& operation) const;
  [[nodiscard]] bool takes_one_hop(const HostLayout& layout) const;
  [[nodiscard]] Schedule schedule_of(const HostLayout& layout) const;
  [[nodiscard]] HostOperation inside_half(const Operation& operation,
                                          std::span<const std::byte> input);
  [[nodiscard]] bool begin(const HostKind& kind, const HostCall& call,
                           const std::function<Operation()>& whole);
  void start_outside(Operation operation, const HostLayout& layout, std::span<std::byte> area,
                     const std::function<void(int)>& meet);
  void start_inside(HostOperation inside);
  void repeat_failure(const Key& key);
  void fail_inside(const Key& key, const core::Error& error);
  void inside_ended(const Key& key, const core::Status& status);
  void outside_ended(const Key& key, const core::Status& status);
  void finish(std::unique_lock<std::mutex>& lock, const Key& key);

  const core::World& world_;
  const std::size_t largest_area_;
  const int flows_;
  const core::AllreducePlan& allreduces_;
  ChunkBoard& board_;

  std::mutex mutex_;
  std::map<Key, Halves> halves_;

  HostTeam team_;  // last: its thread uses the rest
};

}  // namespace fasthorovod::ops
