// What contestants share that run in processes of their own: hearing them, and telling all ranks
// how it went.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/line_process.h"

namespace fasthorovod::tools {

/// What follows the expected word in the process's next line; see worker_answer().
core::Result<std::string> hear_answer(LineProcess& process, std::string_view expected);

/// Tells all ranks the outcome of this one and the number that goes with it, which is not negative.
/// The numbers of all, or the error of the first rank that has one; `contestant` is named then.
core::Result<std::vector<double>> agree(ops::Engine& engine, const core::Result<int>& own,
                                        std::string_view contestant);

}  // namespace fasthorovod::tools
