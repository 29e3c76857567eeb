// Which of the instruction sets that kernels are compiled for they use in this process. The best
// one of the processor unless another is asked for; no bit of a result depends on it.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.h"

namespace fasthorovod::compression {

/// Those this processor has, the best one first: "avx512", "avx2", "sse4", "scalar" at most. The
/// last one has no vectors.
std::vector<std::string_view> instruction_sets();

/// Makes the kernels of the whole process, those of ops too, use one of instruction_sets(), or
/// "auto": the best. An error says which there are. Thread: any; a change only while no kernel
/// runs.
core::Status use_instruction_set(std::string_view name);

/// The one that kernels use, found out by running one.
std::string_view instruction_set();

}  // namespace fasthorovod::compression
