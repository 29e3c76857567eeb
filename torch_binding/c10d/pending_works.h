// What the Works of a group tell it, maybe after it has gone.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "core/result.h"

namespace fasthorovod::torch_binding {

class PendingWorks final {
 public:
  void began();
  void settled(const core::Status& status);

  /// Returns when all that began have settled.
  void wait();

  /// The kind of the last failure that says something about the connections; SUCCESS without one.
  [[nodiscard]] c10d::ErrorType error() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t pending_ = 0;
  c10d::ErrorType error_ = c10d::ErrorType::SUCCESS;
};

}  // namespace fasthorovod::torch_binding
