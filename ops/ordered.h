// The ordered door: operations that need no negotiation, because every member of a group calls the
// same operations in the same order (torch.distributed's rule). Point-to-point messages have a
// space of their own and no order with them.
//
// The number of an operation is taken on the calling thread, inside submit_ordered, before anything
// is queued. Data moves to a rank only once that rank has started the same operation and told the
// sender so, with a fingerprint: nothing arrives that nobody waits for, groups never wait for one
// another, and a rank that calls something else is found before its data is trusted. Then the
// operation fails with kMismatch on every member that is pending, within a second after the last of
// them called, and the group's next operation works. A member that calls it later fails then; one
// that had ended well (its part was done, or empty) gets the error from its next call in the group,
// which starts nothing. The same holds for a time limit that passes on one member: it fails the
// operation for all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"
#include "core/request.h"

namespace fasthorovod::ops {

/// Values are part of the fingerprint: never renumber, only append.
enum class OrderedKind : std::uint8_t {
  kAllreduce = 0,
  kBroadcast = 1,
  kAllgather = 2,      // any block sizes
  kReduceScatter = 3,  // any block sizes
  kReduce = 4,         // leaves the output of the other ranks alone
  kGather = 5,
  kScatter = 6,
  kAlltoall = 7,
  kBarrier = 8,
};

struct OrderedOperation {
  core::GroupId group = core::kWorldGroup;
  OrderedKind kind = OrderedKind::kAllreduce;
  core::DataType type = core::DataType::kFloat32;
  core::Reduction reduction = core::Reduction::kSum;
  double prescale = 1.0;  // reductions: each rank's values are multiplied by it first
  int root = 0;           // a position in the group

  // Memory, lent until the handle is done. `input` and `output` are equal or do not overlap.
  //   all-reduce       input, output: the whole
  //   reduce           input: the whole; output: the whole on the root, unused elsewhere
  //   broadcast        output: the whole, which the root sends; input is not used
  //   all-gather       input: this rank's block; output: all blocks in order
  //   reduce-scatter   input: all blocks in order; output: this rank's block
  //   gather           input: this rank's block; output: all blocks on the root
  //   scatter          input: all blocks on the root; output: this rank's block
  //   all-to-all       input: a block for each rank; output: a block from each rank
  std::span<const std::byte> input;
  std::span<std::byte> output;
  /// Elements of each rank's block, in group order, where blocks are of different size; empty: all
  /// equal. All-to-all: of the blocks sent.
  std::vector<std::uint64_t> blocks;
  /// All-to-all only: elements of the blocks received.
  std::vector<std::uint64_t> received_blocks;

  std::chrono::milliseconds time_limit{0};  // from now; past it the handle fails with kTimedOut
  std::shared_ptr<void> keep_alive;  // owners: the engine until completion, the caller as it likes
  std::string title;                 // for messages, e.g. "all_reduce of 1024 float32"
};

/// One message between two ranks of a group.
struct Message {
  core::GroupId group = core::kWorldGroup;
  int peer = 0;                // a position in the group; receiving: -1 takes any sender
  std::uint32_t tag = 0;       // a receive matches the oldest unmatched send of its tag (and peer)
  std::span<std::byte> bytes;  // sent, or filled; sizes must agree (kMismatch on both sides)
  std::chrono::milliseconds time_limit{0};
  std::shared_ptr<void> keep_alive;
  std::string title;
};

}  // namespace fasthorovod::ops
