// The ranks of one host as a team: all-reduces in which they read each other's arenas (shared
// memory), with no socket between them. What happens to an operation is told in host_runner.h; a
// team runs any number of them, each among any of the ranks of this host.
//
// One thread a team does all the work: whatever step of whatever operation can run, in the order of
// their start. No step waits for anything, so operations of different groups can not block each
// other. It sleeps while there is nothing to do, and mates wake it.
//
// A caller may run one operation itself (begin, drive), beside the thread, which hears nothing of
// it. It keeps awake as long as an answer may come at once, then sleeps on the team's bell if the
// thread has no use for it; an operation that takes longer is handed over to the thread. An area it
// used goes back at its next operation, or when somebody finds no room. What it has made for a
// small one is kept for the next of that kind, a few of them.
//
// Or it may take the thread's place while that has nothing to do (try_take): then it makes the
// steps of all operations, until it gives the place back.
//
// An operation that crosses hosts is two: this one, and one on the chunk board, whose lanes work in
// the operation's area. The owner of both starts it on the board first, opens the board's gates
// (HostHooks::open), says when pieces are through (piece_done), and fails both when one fails.
//
// Areas, and the entries of the table that go with them, come from reserve(). An area goes back by
// itself when every mate is through with the operation: when it has failed here, that needs them to
// fail too.
//
// Thread: any, unless a member says otherwise. A mutex guards bookkeeping, never data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/world.h"
#include "ops/chunk_board.h"
#include "ops/host_mate.h"
#include "ops/host_operation.h"
#include "ops/wire_group.h"
#include "transport/arena_heap.h"

namespace fasthorovod::ops {

/// What a team tells. Called without a lock held, on the team's thread; must not block. They may
/// call the team, but not stop().
struct HostHooks {
  /// The gates of the operation's first `pieces` pieces may open: what this rank owns of them lies
  /// reduced in its area. First called with 0, when all mates have begun.
  std::function<void(std::uint32_t group, std::uint64_t sequence, std::uint32_t pieces)> open =
      [](std::uint32_t, std::uint64_t, std::uint32_t) {};
  /// Once a mate; nothing of its data is read.
  std::function<void(const Disagreement&)> disagreement = [](const Disagreement&) {};
  /// An area was given back.
  std::function<void()> space = [] {};
};

class HostTeam final {
 public:
  /// Bytes at the beginning of every rank's arena that are the team's own; zero in a new arena.
  static std::size_t table_bytes();

  /// Room beyond the heap's limit that operations alone in their groups may need.
  static std::size_t spare_bytes(std::size_t largest_area);

  /// What one operation may take at most, so that a heap of `bytes` has room for those that are
  /// kept for the named door and as much again. All ranks must use the smallest of all.
  static std::size_t largest_area(std::size_t bytes);

  /// `seats`: all ranks of this host in the order of all its ranks' numbers, and their arenas as
  /// mapped here; this rank is one of them. `heap` hands out of this rank's arena what lies behind
  /// the table; it and the arenas outlive the team. `largest_area`: as agreed.
  HostTeam(const core::World& world, std::vector<HostSeat> seats, transport::ArenaHeap& heap,
           std::size_t largest_area, HostHooks hooks);
  ~HostTeam();  // stops
  HostTeam(const HostTeam&) = delete;
  HostTeam& operator=(const HostTeam&) = delete;

  /// An area of at least `bytes`, at most `largest_area`, for one operation; empty when there is
  /// none now: try again after HostHooks::space. The first Executor::kWindow of the named door
  /// always find one, once mates are through with what was there before; so does an operation that
  /// is `alone`, the only one of its group under way on this rank (see host_areas.h).
  [[nodiscard]] std::span<std::byte> reserve(std::size_t bytes, Door door, bool alone = false);
  /// Gives back an area with which nothing was started.
  void give_back(std::span<std::byte> area);

  /// Starts an operation. After stop() it is done at once, on this thread, with that error.
  void start(HostOperation operation);

  /// Begins an operation on one host that the calling thread runs itself. One at a time: no other
  /// thread may start or begin anything before drive() or hand_over() has ended it. Its `done`
  /// stays unused.
  void begin(HostOperation operation);
  /// The same, with what is kept of another one of that kind that begin() began. False, and nothing
  /// has happened: there is none that could serve now.
  [[nodiscard]] bool begin_again(const HostKind& kind, const HostCall& call);
  /// Of what was begun.
  [[nodiscard]] std::span<std::byte> driven_area() const;
  /// Runs it until it is over; the outcome. None: it is to be handed over,
  /// since `until` has passed, or the team stops, or `wanted` is set, for which the caller must see
  /// that nudge() follows.
  [[nodiscard]] std::optional<core::Status> drive(const std::atomic<bool>& wanted,
                                                  core::TimePoint until);
  /// The team's thread goes on with it; title and `done` as of start().
  void hand_over(std::string title, std::function<void(core::Status)> done);
  /// Wakes who drives, or is in sleep(). Any thread.
  void nudge();

  /// Takes the thread's place for the calling thread, which gives it back soon; no other thread may
  /// start or begin anything meanwhile. False: the thread has something to do.
  [[nodiscard]] bool try_take();
  /// One step, by who has taken the place. False: there was nothing to do.
  bool step();
  /// Until there may be something to do, or `wanted` is set, as of drive(), or the team stops; at
  /// most for `limit`.
  void sleep(const std::atomic<bool>& wanted, core::Duration limit);
  /// True: who has the place must give it back at once. It is not left asleep.
  [[nodiscard]] bool stopping() const;
  /// The thread goes on with what is not over.
  void give_place_back();

  /// The board is through with a piece of an operation that crosses hosts: with its sends, too.
  void piece_done(std::uint32_t group, std::uint64_t sequence, std::uint32_t piece);
  /// No lane touches the operation's area any more. To be said of every operation that crosses
  /// hosts and fails, also when it never was on the board: its area can not go back before.
  void transfers_ended(std::uint32_t group, std::uint64_t sequence);

  /// Ends an operation with `error` as soon as no step of it runs; nothing when it is over or
  /// unknown. One that did not start here must not be started later.
  void fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error);

  /// Ends every operation with `error`, and the thread: when this returns, nobody touches callers'
  /// memory. Areas that mates may still read stay as they are, so the arena must outlive the mates'
  /// operations and serve no other purpose. Not on the team's thread; the first call counts.
  void stop(const core::Error& error);

  /// What the oldest operation that waits for a mate waits for; as of the chunk board.
  [[nodiscard]] std::optional<ChunkBoard::Wait> waiting() const;
  /// World ranks on this host that have not begun the operation.
  [[nodiscard]] std::vector<int> awaited(std::uint32_t group, std::uint64_t sequence) const;
  /// Grows with every step: while it stands still, nothing moves on this host.
  [[nodiscard]] std::uint64_t progress() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fasthorovod::ops
