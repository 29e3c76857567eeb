// What is said between fasthorovod-bench and gloo_worker.py, where each line is explained, or
// mpi_worker.cc, which follows it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/step_contestant.h"
#include "tools/fasthorovod-bench/training_models.h"

namespace fasthorovod::tools {

/// The line that starts a turn on `rank` of `size`.
std::string worker_run(const Turn& turn, int rank, int size);

/// The same for training steps. `scale`: by what the gradients were divided, and so the buckets.
std::string worker_step(const StepTurn& turn, const std::vector<Gradient>& gradients,
                        std::uint64_t scale, int rank, int size);

// Errors: what the worker says went wrong (kUnavailable), or a line that makes no sense
// (kProtocol).

/// What follows the word that is expected.
core::Result<std::string> worker_answer(std::string_view line, std::string_view expected);

/// What follows "here".
core::Result<int> parse_worker_port(std::string_view text);

/// What follows "took": so many samples.
core::Result<std::vector<Sample>> parse_worker_samples(std::string_view text, std::size_t count);

}  // namespace fasthorovod::tools
