// Times all-reduces of float32 over the public engine and checks every result.
//
// Columns as nccl-tests has them: time is the median over the iterations of the slowest rank's view
// on rank 0, algbw = bytes / time, busbw = algbw * 2 (n - 1) / n, which a perfect network makes
// equal to its rate for any n.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ops/engine.h"

namespace fasthorovod::tools {

struct AllreduceOptions {
  std::vector<std::uint64_t> sizes;  // bytes, rounded down to whole floats
  int iterations = 20;
  int warm_up = 5;
  bool json = false;  // one JSON object a line instead of the table
};

/// Runs all sizes on this rank and prints on rank 0. The number of wrong values over all sizes, or
/// the first error.
core::Result<std::uint64_t> run_allreduce(ops::Engine& engine, const AllreduceOptions& options);

}  // namespace fasthorovod::tools
