// A schedule: what one rank sends and receives in one collective, and what waits for what, as plain
// data.
//
// Schedules are built by pure functions (ops/algorithms/) from a Shape, and executed by the
// ChunkBoard. Peers are positions in the group. Spans are bytes of the operation's buffer and
// hold whole elements; those of sends are of its source where it has one apart.
//
// Numbering: the k-th transfer from rank a to rank b in a's `sends` is the k-th transfer from a in
// b's `receives`. The frame header carries k, so both sides know a chunk without talking.
//
// What comes is copied into the buffer, or added to it as it comes, in the order of hops. Where
// several ranks send at once, whose values are to be added in a fixed order, they are kept apart in
// a scratch until a sum has all of them: so nobody waits for a turn, and no flow parks.
//
// A schedule may be cut into pieces that have gates: nothing of a piece moves before its gate is
// open, on this rank and on the peer's (see chunk_board.h). Immutable values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace fasthorovod::ops {

struct ByteSpan {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

enum class Action : std::uint8_t {
  kCopy,    // what comes replaces the span
  kReduce,  // the span becomes reduce(span, what comes), element by element
  kKeep,    // what comes is put into the scratch, at the span, for a sum
};

/// A step of this rank alone: reduces what it and some others have of a span, in the order of those
/// ranks.
struct Sum {
  ByteSpan span;                // of the buffer: has this rank's values, and then the result
  std::uint64_t offset = 0;     // in the scratch: the same span of the first other rank,
  std::uint64_t stride = 0;     // so far before that of the next one
  std::uint32_t others = 0;     // how many there are
  std::uint32_t place = 0;      // of this rank among all of them
  std::uint32_t waits_for = 0;  // transfers that must be complete first
};

inline constexpr std::uint32_t kNoSum = std::numeric_limits<std::uint32_t>::max();

struct Send {
  int peer = 0;
  ByteSpan span;
  std::uint32_t hop = 0;        // how many ranks the chunk has passed before this one
  std::uint32_t waits_for = 0;  // receives that must be complete first; 0 may go at once
  std::uint32_t piece = 0;      // whose gate must be open, if there are gates
  std::uint32_t sum = kNoSum;   // that waits for it
};

struct Receive {
  int peer = 0;
  ByteSpan span;
  std::uint32_t hop = 0;
  Action action = Action::kCopy;
  std::vector<std::uint32_t> unlocks;  // indices of sends that wait for this one
  std::uint32_t piece = 0;             // whose gate must be open, if there are gates
  std::uint32_t sum = kNoSum;          // that waits for it; a send that it unlocks leaves after it
};

struct Schedule {
  std::vector<Send> sends;  // in the order in which they should leave when all may
  std::vector<Receive> receives;
  std::vector<Sum> sums;
  // Pieces that have gates; with them, sends and receives stand in the order of their pieces.
  std::uint32_t pieces = 0;
  // Piece k uses the memory of piece k - slots; the first `slots` pieces find theirs free. A rank
  // that sends to a peer in piece k also does in piece k - slots.
  std::uint32_t slots = 0;
  // Gates hold back sends alone: there is memory for whatever comes from the start.
  bool receives_early = false;

  [[nodiscard]] bool empty() const { return sends.empty() && receives.empty() && pieces == 0; }
  [[nodiscard]] std::uint64_t bytes_sent() const;
};

/// What an algorithm is given: the same on every rank but for `rank`.
struct Shape {
  int rank = 0;
  int size = 1;
  std::uint64_t element_bytes = 1;
  std::uint64_t elements = 0;  // all-reduce, broadcast, reduce: of the whole buffer
  std::vector<std::uint64_t>
      block_elements;  // where each rank has a block of its own: their sizes, in rank order
  int root = 0;        // operations that have one
  std::uint64_t chunk_bytes =
      256u << 10;  // the largest transfer; rounded down to whole elements, at least one

  std::vector<std::uint64_t> received_elements{};  // all-to-all: of the blocks that come

  /// The position `distance` places after `rank` in the ring of positions; any sign.
  [[nodiscard]] int neighbour(int distance) const;
  [[nodiscard]] std::uint64_t bytes() const { return elements * element_bytes; }
};

/// Adds the receive of a transfer that waits for nothing here and unlocks nothing yet; its index.
std::uint32_t add_receive(Schedule& schedule, int peer, ByteSpan span, std::uint32_t hop,
                          Action action);

/// Adds a send that may go at once; its index.
std::uint32_t add_send(Schedule& schedule, int peer, ByteSpan span, std::uint32_t hop);

/// Makes a send of the schedule wait for one of its receives.
void add_dependency(Schedule& schedule, std::uint32_t receive, std::uint32_t send);

/// Makes a sum wait for a transfer of the schedule.
void add_to_sum(Schedule& schedule, Send& send, std::uint32_t sum);
void add_to_sum(Schedule& schedule, Receive& receive, std::uint32_t sum);

}  // namespace fasthorovod::ops
