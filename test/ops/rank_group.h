// Several ranks for one test: as threads of this process, each with an engine of its own, or as
// real processes. Either way they meet over real sockets on the loopback.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config.h"
#include "ops/engine.h"

namespace fasthorovod::ops::testing {

/// Runs in every rank.
using RankBody = std::function<void(Engine&)>;

struct GroupOptions {
  std::function<void(core::Config&)> adjust = [](core::Config&) {};  // every rank's configuration
  bool quiet = false;  // faults are expected: their log lines are not shown
};

/// Puts every rank on a host of its own, so that all data crosses the network.
void live_apart(core::Config& config);
/// Puts two neighbours on each host, so that data crosses shared memory and the network.
void live_in_pairs(core::Config& config);

/// Starts `size` ranks as threads, which meet through a store, runs `body` in each and waits for
/// all. Expectations in the body count for the test.
void run_as_threads(int size, const RankBody& body, const GroupOptions& options = {});

/// The same as processes, which meet by hand. A child fails by a failed expectation. Returns the
/// exit codes in rank order: 0, 1 for failed expectations, 128 + signal. The caller must have no
/// thread of its own.
std::vector<int> run_as_processes(int size, const RankBody& body, const GroupOptions& options = {});

/// A float32 all-reduce in place; the submission of most tests.
Submission allreduce_of(const std::string& name, std::vector<float>& values,
                        core::Reduction reduction = core::Reduction::kSum);

/// Waits at most 30 s, so that a lost completion fails the test instead of hanging it.
core::Status outcome(const core::Result<Handle>& handle);
void expect_success(const core::Result<Handle>& handle);
/// Failed with that code and with all of these words.
void expect_failure(const core::Result<Handle>& handle, core::ErrorCode code,
                    const std::vector<std::string>& words);

}  // namespace fasthorovod::ops::testing
