// Ranks without sockets: one ChunkBoard a rank, joined by imaginary flows that a seeded scheduler
// moves.
//
// Each step one random actor does one small thing: a rank starts its next operation, a flow takes a
// chunk, or joins several, or writes a piece of it, a flow's other end reads a header, or a piece
// of the payload. So chunks overtake each other, arrive before their operation has started (and
// park), and are sent in pieces, differently for every seed and alike for the same. With `naps`
// some actors are asleep for a while and move only when nobody else can, so that ranks and flows
// run far ahead of others. Thread: owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/chunk_board.h"

namespace fasthorovod::ops {

class BoardNetwork final {
 public:
  struct Options {
    int size = 2;
    int flows = 2;           // in each direction between each pair
    std::size_t window = 1;  // a rank starts no operation so far ahead of one in flight
    std::uint64_t seed = 1;
    bool naps = false;
    bool joins = true;  // chunks at random; else none
    // Bytes a flow takes that were not read yet, a header being one; then its writer waits.
    std::uint64_t room = std::numeric_limits<std::uint64_t>::max();
  };

  struct Fault {
    int rank = 0;  // who noticed
    int peer = 0;
    core::Error error;
  };

  explicit BoardNetwork(const Options& options);

  /// Queues an operation; the rank starts its operations in this order. Results go to outcomes().
  void submit(int rank, Operation operation);

  /// Adds an actor of the test's own: it does one small thing, or says that it can not.
  void add_actor(std::function<bool()> actor) { others_.push_back(std::move(actor)); }

  /// Frames of which this is true, of the rank they go to and their header, are not read for now.
  void delay(std::function<bool(int to, const transport::FrameHeader& header)> delayed) {
    delayed_ = std::move(delayed);
  }

  /// Steps until no actor can move. Returns the number of steps.
  std::size_t run();
  /// One step. False: nobody can move.
  bool step();

  [[nodiscard]] ChunkBoard& board(int rank) {
    return *ranks_[static_cast<std::size_t>(rank)].board;
  }
  /// The outcomes of a rank's operations, in the order of their ends.
  [[nodiscard]] const std::vector<core::Status>& outcomes(int rank) const;
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }
  /// Who found that a peer believes in another operation.
  [[nodiscard]] const std::vector<std::pair<int, Disagreement>>& disagreements() const {
    return disagreements_;
  }
  [[nodiscard]] std::uint64_t bytes_sent(int rank) const;
  /// How often a chunk came before its operation had started.
  [[nodiscard]] std::uint64_t parked() const { return parked_; }
  /// How many chunks were joined to others.
  [[nodiscard]] std::uint64_t joined() const { return joined_; }

 private:
  struct Rank {
    std::unique_ptr<ChunkBoard> board;
    std::deque<Operation> waiting;
    std::uint64_t submitted = 0;
    std::uint64_t started = 0;
    std::set<std::uint64_t> in_flight;  // by the order of their start
    std::vector<core::Status> outcomes;
    std::uint64_t wakes = 0;
    std::uint64_t bytes_sent = 0;
  };

  struct Frame {
    transport::FrameHeader header;
    std::vector<std::byte> written;
    std::optional<transport::Arrival> arrival;
    std::uint64_t read = 0;
  };

  struct Flow {
    int from = 0;
    int to = 0;
    std::optional<transport::OutgoingChunk> leaving = std::nullopt;
    std::deque<Frame> frames = {};
    // The reader's wakes when the first frame parked.
    std::optional<std::uint64_t> parked_at = std::nullopt;
    bool closed = false;  // its reader refused a frame
  };

  bool act(std::size_t actor);
  bool act_any(std::size_t actors, bool asleep);
  void send_to_sleep(std::size_t actors);
  bool start_next(Rank& rank);
  bool write(Flow& flow);
  void join_at_random(Flow& flow);
  bool read(Flow& flow);
  bool read_header(Flow& flow, Frame& frame);
  bool read_payload(Flow& flow, Frame& frame);
  [[nodiscard]] std::uint64_t room_of(const Flow& flow) const;
  std::uint64_t random_piece(std::uint64_t available);
  Rank& rank(int index) { return ranks_[static_cast<std::size_t>(index)]; }

  Options options_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::vector<Flow> flows_;
  std::vector<std::function<bool()>> others_;
  std::function<bool(int, const transport::FrameHeader&)> delayed_ = [](int, const auto&) {
    return false;
  };
  std::vector<bool> asleep_;    // by actor
  std::uint64_t nap_left_ = 0;  // steps
  std::vector<Fault> faults_;
  std::vector<std::pair<int, Disagreement>> disagreements_;
  std::uint64_t parked_ = 0;
  std::uint64_t joined_ = 0;
};

}  // namespace fasthorovod::ops
