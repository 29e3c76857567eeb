// torch's gloo, in a Python process beside each rank (gloo_worker.py), which this program holds as
// text: only torch has to be installed. Its times include torch's way from Python to gloo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/line_process.h"

namespace fasthorovod::tools {

class GlooContestant final : public Contestant {
 public:
  /// Starts the Python process, which begins to load torch. `python` is looked for on PATH.
  static core::Result<std::unique_ptr<GlooContestant>> start(const std::string& python,
                                                             const core::Config& config);

  /// Connects the Python processes with one another; all ranks call it. When it fails on one rank,
  /// it fails on all.
  core::Status meet(ops::Engine& engine);

  [[nodiscard]] std::string_view name() const override { return "gloo"; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  core::Result<std::vector<Sample>> take(const Turn& turn) override;

  /// Sends the workers a line that asks for so many samples. All ranks call it.
  core::Result<std::vector<Sample>> ask(const std::string& line, int samples);

 private:
  explicit GlooContestant(std::unique_ptr<LineProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<LineProcess> process_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace fasthorovod::tools
