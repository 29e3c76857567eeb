// The options of `fasthorovod-bench step`. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovod-bench/command_line.h"

namespace fasthorovod::tools {

class StepArguments final {
 public:
  /// Declares them; this and `line` outlive the parsing.
  void declare(CLI::App& command, BenchCommandLine& line);

  /// After the parsing: checks them and fills in the rest of `line`.
  core::Status read(BenchCommandLine& line) const;

 private:
  std::string model_ = "resnet50";
  std::vector<double> compute_ms_;
  double exposed_percent_ = 0;  // 0: not said
  std::vector<std::string> backends_;
};

}  // namespace fasthorovod::tools
