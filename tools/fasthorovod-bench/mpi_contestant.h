// MPI's own all-reduce, in processes that mpirun starts (mpi_worker.cc), as many as there are
// ranks. Rank 0 starts mpirun and talks to it; the other ranks hear from rank 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/line_process.h"

namespace fasthorovod::tools {

class MpiContestant final : public Contestant {
 public:
  /// `mpirun` is the command and its own options, separated by blanks; it is for them to say on
  /// which hosts the processes run. kUnavailable: the worker is not installed.
  static core::Result<std::unique_ptr<MpiContestant>> start(const std::string& mpirun,
                                                            const core::Config& config);

  /// Waits until they run; all ranks call it. When it fails on one rank, it fails on all. The
  /// engine outlives this.
  core::Status meet(ops::Engine& engine);

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  core::Result<std::vector<Sample>> take(const Turn& turn) override;

 private:
  MpiContestant() = default;
  core::Result<std::vector<Sample>> lead(const Turn& turn);

  std::unique_ptr<LineProcess> process_;  // rank 0 only
  ops::Engine* engine_ = nullptr;         // from meet() on
};

}  // namespace fasthorovod::tools
