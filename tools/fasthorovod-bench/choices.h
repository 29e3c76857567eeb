// Options that take one of a few words. Pure.
#pragma once

#include <string_view>

#include "core/data_type.h"
#include "core/reduction.h"
#include "core/result.h"

namespace fasthorovod::tools {

/// Which of the engine's doors the all-reduces go through.
enum class BenchDoor {
  kOrdered,  // as calls of torch.distributed: no negotiation
  kNamed,    // as those of fasthorovod.torch: rank 0 finds out who is ready
};

/// Where the engine's buffers are.
enum class BenchMemory {
  kOrdinary,  // this process's own
  kArena,     // what the ranks of a host share
};

// Errors list the words that are allowed.

/// Torch's names, "float32", and half, float and double, as nccl-tests has them.
core::Result<core::DataType> parse_type(std::string_view text);

/// As nccl-tests has them: sum, prod, min, max, avg.
core::Result<core::Reduction> parse_reduction(std::string_view text);
std::string_view reduction_name(core::Reduction reduction);

/// ordered or named.
core::Result<BenchDoor> parse_door(std::string_view text);
std::string_view door_name(BenchDoor door);

/// ordinary or arena.
core::Result<BenchMemory> parse_memory(std::string_view text);
std::string_view memory_name(BenchMemory memory);

}  // namespace fasthorovod::tools
