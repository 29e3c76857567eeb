// Blocks of bytes between the processes of one mpirun: what a lane needs of MPI to move chunks.
//
// Blocks from one rank to another arrive in order. No call waits for the other side. Thread: one at
// a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "core/result.h"

namespace fasthorovod::transport {

/// A block on its way. Until done() has said true, or an error, its bytes belong to MPI, and this
/// object must live.
class MpiTransfer {
 public:
  virtual ~MpiTransfer() = default;
  virtual core::Result<bool> done() = 0;
};

/// A block that has come, or begins to.
class MpiArrival {
 public:
  virtual ~MpiArrival() = default;
  [[nodiscard]] virtual int peer() const = 0;
  [[nodiscard]] virtual std::size_t bytes() const = 0;
  /// Once; `into` has bytes() bytes.
  virtual core::Result<std::unique_ptr<MpiTransfer>> receive(std::span<std::byte> into) = 0;
};

class MpiBlocks {
 public:
  virtual ~MpiBlocks() = default;

  virtual core::Result<std::unique_ptr<MpiTransfer>> send_block(
      int peer, std::span<const std::byte> block) = 0;
  /// The next block from any rank that has not been returned yet, or null.
  virtual core::Result<std::unique_ptr<MpiArrival>> next_block() = 0;
};

}  // namespace fasthorovod::transport
