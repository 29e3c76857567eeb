// One operation of a HostTeam, as a state machine: what was published by the mates goes in, the
// next step that can run comes out, and what a finished step makes true is published. It never
// waits and calls nobody.
//
// With piece k in slot k mod slots of every rank's area, each rank
//   copies in    the stripes of others from its input into its area (in);
//   reduces      its own stripes once all have copied in: from its input and the others' areas into
//                its area and, on one host, straight into its output (summed; out);
//   copies out   the stripes of others from their areas into its output, once they are out
//                (copied).
// Where the layout crosses hosts, what was reduced is not final: the chunk board's lanes exchange
// it, in place in the area, and a piece is out when they are through with it; then the rank's own
// stripes are copied out, too. A slot is used again when all have summed and copied what it held.
//
// What lies in the arena of its rank is not copied there first (host_loan.h). An input that a rank
// lends is reduced from where it is; to an output that it lends, the owners of stripes write what
// they have reduced, and others copy its own stripes out from there. The pieces keep the same
// pace, but where all lend all, they wait for no slot.
// A rank whose output is lent ends when all have copied the last one; if it fails, when nobody
// writes to it.
//
// A small operation on one host (host_stripes.h) is one meeting instead of two: each rank copies in
// all, and reduces all of it once the others have, straight into its output. Of one that is one
// piece nobody asks who has copied out.
//
// A rank that ended needs nothing more of its mates, but they may still read its area and its
// counters. So its entry and its area stay until each mate has not begun, has failed or has
// finished, and none can look at them again.
//
// Thread: owner; run(), which touches data alone, may run beside the const members, piece_done,
// transfers_ended and fail.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ops/chunk_board.h"
#include "ops/host_mate.h"
#include "ops/host_operation.h"
#include "ops/host_sweep.h"

namespace fasthorovod::ops {

/// The gates of an operation on the chunk board that may open: of the first `pieces` pieces.
struct HostGates {
  std::uint32_t group = 0;
  std::uint64_t sequence = 0;
  std::uint32_t pieces = 0;
};

/// An operation's `done` is to be called.
struct HostEnd {
  std::function<void(core::Status)> done;
  core::Status status;
};

/// What others have to hear of what a runner did.
struct HostNews {
  std::vector<HostBell*> bells;  // each once
  std::vector<Disagreement> disagreements;
  std::vector<HostGates> gates;
  std::vector<HostEnd> ends;

  [[nodiscard]] bool empty() const {
    return bells.empty() && disagreements.empty() && gates.empty() && ends.empty();
  }
  /// Keeps the memory.
  void clear() {
    bells.clear();
    disagreements.clear();
    gates.clear();
    ends.clear();
  }
};

struct HostStep {
  enum class Kind { kCopyIn, kReduce, kCopyOut };
  Kind kind = Kind::kCopyIn;
  HostBlock block;
};

class HostRunner final {
 public:
  /// Publishes the operation in `table`, this rank's, whose arena holds `operation.area` at
  /// `area_offset`. `seats`: of the ranks of the layout's own host, by place.
  HostRunner(HostOperation operation, HostTable& table, std::uint64_t area_offset,
             const std::vector<HostSeat>& seats);
  HostRunner(const HostRunner&) = delete;
  HostRunner& operator=(const HostRunner&) = delete;

  /// Whether begin_next() can follow: it is small, has ended well, and nobody looks at it any more.
  [[nodiscard]] bool can_begin_next() const { return one_meeting_ && outcome_ && releasable(); }
  /// Publishes the next operation of this kind in the same entry and area, as a new runner would.
  /// It has the title of the last one, and no `done`, until tell_end().
  void begin_next(const HostCall& call);

  /// Looks at the mates, and publishes what is true by now.
  void look(HostNews& news);
  /// The next step that can run.
  [[nodiscard]] std::optional<HostStep> next() const;
  void run(const HostStep& step) noexcept;
  /// That step has run.
  void ran(const HostStep& step, HostNews& news);

  /// The lanes are through with a piece: with its sends, too.
  void piece_done(std::uint32_t piece);
  /// No lane touches the area any more, however the operation ended on the chunk board.
  void transfers_ended() { transfers_ended_ = true; }
  /// What hears of its end instead of the operation's `done`, and what it is called from now on; it
  /// has not ended.
  void tell_end(std::string title, std::function<void(core::Status)> done) {
    operation_.title = std::move(title);
    operation_.done = std::move(done);
  }
  /// The operation ends with `error` at the next look() that finds no mate writing to its output,
  /// unless it has ended before.
  void fail(const core::Error& error);
  /// Ends it now, as the world has ended: takes the output back from who still writes to it.
  void give_up(const core::Error& error, HostNews& news);

  [[nodiscard]] const HostOperation& operation() const { return operation_; }
  [[nodiscard]] HostKey key() const { return {operation_.group, operation_.sequence}; }
  [[nodiscard]] bool ended() const { return ended_; }
  /// Once it has ended.
  [[nodiscard]] const core::Status& outcome() const { return outcome_; }
  /// Ended, and nobody looks at its entry and its area any more.
  [[nodiscard]] bool releasable() const;
  /// World ranks on this host that it waits for.
  [[nodiscard]] std::vector<int> awaited() const;
  /// Those that have not begun it.
  [[nodiscard]] std::vector<int> absent() const;

  /// Takes the entry back.
  void retire();

 private:
  using Counter = std::atomic<std::uint32_t> HostSlot::*;

  void look_at_mates(HostNews& news);
  void end(core::Status status, HostNews& news);
  bool settle(HostNews& news);
  void publish(Counter counter, std::uint32_t piece, HostNews& news);
  void publish_empty();
  void ring(HostNews& news) const;
  [[nodiscard]] bool may_copy_in() const;
  [[nodiscard]] bool may_reduce() const;
  [[nodiscard]] bool is_out(int stripe) const;
  [[nodiscard]] bool transferred(std::uint32_t piece) const;
  [[nodiscard]] bool all_reached(Counter counter, std::uint32_t piece) const;
  [[nodiscard]] bool is_through(const HostMate& mate) const;
  [[nodiscard]] bool owes(const HostMate& mate) const;
  template <typename Predicate>
  [[nodiscard]] std::vector<int> ranks_of(Predicate predicate) const;
  [[nodiscard]] int place_of(int stripe) const;
  [[nodiscard]] const HostMate& mate_of(int stripe) const;
  [[nodiscard]] bool mates_read_area() const;
  [[nodiscard]] bool may_end() const;
  [[nodiscard]] bool used_in_time(const HostStep& step) const;
  [[nodiscard]] bool is_written() const;
  void take_output_back();
  [[nodiscard]] const std::byte* source(std::size_t place, std::uint64_t in_buffer,
                                        std::uint64_t in_area) const;
  void copy_out(const HostBlock& block, std::uint64_t in_buffer, std::uint64_t in_area) noexcept;
  void reduce(const HostBlock& block, std::uint64_t in_buffer, std::uint64_t in_area) noexcept;
  void reduce_part(std::span<std::byte> result) noexcept;
  void reduce_and_hand_out(std::uint64_t in_buffer, std::span<std::byte> result) noexcept;
  void hand_out(std::uint64_t in_buffer, std::span<const std::byte> result,
                const HostMate& mate) const noexcept;

  HostOperation operation_;  // without `done` once it has ended
  HostTable& table_;
  const HostLoan loan_;
  const bool past_caches_;  // what is copied out
  const bool one_meeting_;  // small, and in one piece
  HostEntry* const entry_;
  std::vector<HostMate> mates_;  // by place; this rank's own is never looked at
  std::vector<HostMate*> others_;

  HostSweep in_;
  HostSweep sum_;
  HostSweep out_;
  std::uint32_t final_pieces_ = 0;         // whose own stripes are out
  std::vector<bool> transferred_;          // by piece
  std::vector<const std::byte*> sources_;  // of a reduction, by place
  std::vector<const HostMate*> lenders_;   // of outputs, in a reduction
  bool introduced_ = false;
  bool transfers_ended_ = false;
  bool all_here_ = false;
  bool all_lend_ = false;  // input and output, and are here
  bool spoiled_ = false;   // a mate failed while its loan was used: this can only fail, too
  std::optional<core::Error> failure_;
  bool ended_ = false;
  core::Status outcome_;
};

}  // namespace fasthorovod::ops
