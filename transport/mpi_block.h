// The block that a lane sends over MPI: part of the stream of frames from one rank to another.
//
// MPI sees only such blocks, which belong to the library, and never the memory of callers: so
// nothing that is lent to a lane is in MPI's hands when the lane has stopped, whatever state its
// transfers are in, and a network that registers memory does so once a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transport/frame.h"
#include "transport/mpi_blocks.h"

namespace fasthorovod::transport {

/// Wire values.
enum class MpiBlockKind : std::uint32_t {
  kFrame = 0,   // begins a frame: its header, and the beginning of the payload
  kRest = 1,    // more of the payload
  kEnd = 2,     // nothing follows; the sender has stopped
  kBroken = 3,  // nothing follows; the sender gave this direction and the other up
};

/// What stands before the payload, as it is in memory: MPI ranks share a byte order.
struct MpiBlockHead {
  std::uint64_t mark = 0;  // of the sender's world; blocks of another one are dropped
  MpiBlockKind kind = MpiBlockKind::kEnd;
  std::uint32_t unused = 0;
  FrameHeaderBytes header{};  // kFrame only
};
static_assert(sizeof(MpiBlockHead) == 64, "the payload is aligned for every type of element");

class MpiBlock final {
 public:
  /// Of payload a block; a multiple of kGranule.
  static constexpr std::size_t kPayload = std::size_t{256} << 10;
  static constexpr std::size_t kBytes = sizeof(MpiBlockHead) + kPayload;

  [[nodiscard]] MpiBlockHead& head() { return contents_.head; }
  [[nodiscard]] std::span<std::byte> payload() { return contents_.payload; }
  /// The first `count` bytes, head included.
  [[nodiscard]] std::span<std::byte> bytes(std::size_t count) {
    return {reinterpret_cast<std::byte*>(&contents_), count};
  }

 private:
  struct alignas(64) Contents {
    MpiBlockHead head;
    std::array<std::byte, kPayload> payload;
  };
  Contents contents_;
};

/// Blocks that are not in use. Thread: owner.
class MpiBlockPool final {
 public:
  std::unique_ptr<MpiBlock> get() {
    if (free_.empty()) return std::make_unique_for_overwrite<MpiBlock>();
    auto block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void put(std::unique_ptr<MpiBlock> block) { free_.push_back(std::move(block)); }

 private:
  std::vector<std::unique_ptr<MpiBlock>> free_;
};

/// A block in MPI's hands.
struct MpiBlockOnItsWay {
  std::unique_ptr<MpiBlock> block;
  std::size_t bytes = 0;
  std::unique_ptr<MpiTransfer> transfer;
};

}  // namespace fasthorovod::transport
