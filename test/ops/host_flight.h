// One all-reduce on one rank of a host, as the steps inside hosts go by the book: memory that the
// ranks of the host see of each other, and four counters a slot that say what may be read.
//
// Each call of advance() does one step, if one can be done now. Thread: owner.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "ops/chunk_board.h"
#include "ops/host_layout.h"
#include "test/ops/hosts.h"
#include "test/ops/scalar_reference.h"

namespace fasthorovod::ops {

struct HostCollective {
  std::uint64_t elements = 0;
  core::DataType type = core::DataType::kFloat32;
  core::Reduction reduction = core::Reduction::kSum;
  std::uint64_t chunk_bytes = 32;
  std::uint64_t largest_area = 4096;
  std::uint32_t slots = kHostSlots;  // at most; fewer make pieces wait for each other more
  std::uint32_t group = wire_group(5, Door::kNamed);
  std::uint64_t sequence = 1;
  bool one_stripe = false;
  bool one_hop = false;  // between hosts; for one piece
  bool early = false;
};

/// Of each rank, the same at every call: small numbers, whose sums are exact, or any bits.
std::vector<Bytes> inputs_of(const HostCollective& collective, int ranks, bool any_bits = false);
/// The result on all ranks.
Bytes expected_of(const HostCollective& collective, const std::vector<Bytes>& inputs);

class HostFlight final {
 public:
  HostFlight(const HostCollective& collective, const Hosts& hosts, int position, Bytes input);

  /// Starts it on the rank's board; `mates` are the flights of its host, by place. All stay where
  /// they are.
  void start(ChunkBoard& board, std::vector<HostFlight*> mates);
  [[nodiscard]] bool started() const { return board_ != nullptr; }

  /// Does one step. False: nothing can be done.
  bool advance();

  /// All pieces are copied out and the board is done, or it has failed.
  [[nodiscard]] bool over() const;
  [[nodiscard]] const std::optional<core::Status>& outcome() const { return outcome_; }
  [[nodiscard]] const Bytes& output() const { return output_; }
  [[nodiscard]] const HostLayout& layout() const { return layout_; }
  /// Nothing has written to the area since the operation failed.
  [[nodiscard]] bool untouched_since_failure() const;
  /// The pieces of which the board said that they are over.
  [[nodiscard]] const std::multiset<std::uint32_t>& pieces_told() const { return told_; }

 private:
  using Counters = std::array<std::uint32_t, kHostSlots>;
  enum class Fact { kIn, kSummed, kOut, kCopied };

  [[nodiscard]] Operation operation();
  [[nodiscard]] bool all_say(Fact fact, std::uint32_t piece) const;
  void say(Fact fact, std::uint32_t piece);
  bool open_first();
  bool copy_in();
  bool reduce();
  bool publish();
  bool copy_out();
  void reduce_stripe(std::uint32_t piece, int stripe);
  [[nodiscard]] std::byte* in_area(std::uint32_t piece, int stripe);

  const HostCollective collective_;
  const HostLayout layout_;
  const Bytes input_;
  Bytes output_;
  Bytes area_;
  ChunkBoard* board_ = nullptr;
  std::vector<HostFlight*> mates_;
  std::array<Counters, 4> facts_{};  // by fact and slot: the last piece of which it holds, plus 1
  bool opened_ = false;
  std::uint32_t next_in_ = 0;
  std::uint32_t next_sum_ = 0;
  std::uint32_t next_copied_ = 0;
  std::set<std::uint32_t> transferred_;  // not published yet
  std::multiset<std::uint32_t> told_;
  std::optional<core::Status> outcome_;
};

}  // namespace fasthorovod::ops
