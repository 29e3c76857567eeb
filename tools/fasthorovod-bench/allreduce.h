// Times all-reduces between the ranks and prints what nccl-tests prints: all contestants take
// turns, size by size and repetition by repetition, so that a ratio of their times means something
// on a machine that is not quiet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/codec_choice.h"
#include "core/data_type.h"
#include "core/reduction.h"
#include "core/result.h"
#include "core/world.h"
#include "tools/fasthorovod-bench/choices.h"
#include "tools/fasthorovod-bench/contestant.h"

namespace fasthorovod::tools {

struct AllreduceOptions {
  std::vector<std::uint64_t> counts{};  // elements of each size
  core::DataType type = core::DataType::kFloat32;
  core::Reduction reduction = core::Reduction::kSum;
  BenchDoor door = BenchDoor::kOrdered;
  core::CodecChoice codec{};                    // of our own engine alone
  BenchMemory memory = BenchMemory::kOrdinary;  // likewise
  int iterations = 20;
  int warm_up = 5;
  int repetitions = 0;        // at least 1 when it runs; 0: not said
  bool back_to_back = false;  // nothing between iterations, see back_to_back.h
  double budget_s = 0;        // then, not 0: as many iterations as fit in these seconds
  bool json = false;          // one JSON object a line instead of the table
  std::string trace{};        // a file, "-" for standard output, or "" for none
};

/// Runs all sizes on this rank and prints on rank 0. The first contestant is the one whose times
/// are divided by those of each other. How many values were wrong, of all sizes and contestants, or
/// the first error.
core::Result<std::uint64_t> run_allreduce(const core::World& world,
                                          std::span<Contestant* const> contestants,
                                          const AllreduceOptions& options);

}  // namespace fasthorovod::tools
