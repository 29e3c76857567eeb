// Letters between the processes of one mpirun: what ranks need of MPI to find one another.
//
// Letters from one rank to another with one tag arrive in order. Neither call waits for the other
// side. Thread: as the implementation says.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"

namespace fasthorovod::transport {

using Letter = std::vector<std::byte>;

class MpiMail {
 public:
  virtual ~MpiMail() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  virtual core::Status send(int peer, int tag, std::span<const std::byte> letter) = 0;
  /// The oldest letter that has come, or nothing.
  virtual core::Result<std::optional<Letter>> receive(int peer, int tag) = 0;
};

}  // namespace fasthorovod::transport
