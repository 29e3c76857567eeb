// A way to run an all-reduce between the same ranks. All are measured alike, with one loop:
//
//     fill the buffer
//     tell each other the time and the errors of the iteration before, which lines the ranks up
//     all-reduce in place                                                   <- this is timed
//     check every value
//
// Thread: owner. All ranks call the same in the same order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"
#include "core/result.h"

namespace fasthorovod::tools {

/// All-reduces of one size, one after the other.
struct Turn {
  std::uint64_t count = 0;  // elements
  core::DataType type = core::DataType::kFloat32;
  core::Reduction reduction = core::Reduction::kSum;
  int warm_up = 0;  // iterations before timing starts
  int iterations = 1;
};

/// One timed all-reduce, as all ranks together saw it.
struct Sample {
  double microseconds = 0;  // on the slowest rank
  std::uint64_t wrong = 0;  // values, of all ranks and of the warm-up before it
};

class Contestant {
 public:
  virtual ~Contestant() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  /// The same samples on every rank, one for each iteration of the turn.
  virtual core::Result<std::vector<Sample>> take(const Turn& turn) = 0;
};

}  // namespace fasthorovod::tools
