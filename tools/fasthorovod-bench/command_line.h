// The command line of fasthorovod-bench. Pure: reads nothing but its arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovod-bench/allreduce.h"
#include "tools/fasthorovod-bench/placement.h"
#include "tools/fasthorovod-bench/plan_options.h"
#include "tools/fasthorovod-bench/step.h"

namespace fasthorovod::tools {

struct BenchCommandLine {
  std::string help{};  // not empty: to be printed, and that is all
  bool steps = false;  // what to measure: steps, or all-reduces
  bool plan = false;   // neither, but what was chosen
  AllreduceOptions allreduce{};
  StepOptions step{};
  PlanOptions plan_options{};
  std::optional<PlacementOptions> placement{};  // in place of both
  bool gloo = false;                            // runs it beside the engine
  bool mpi = false;                             // the same
  bool one_flow = false;                        // the same, the engine with one flow to each peer
  std::string python = "python3";               // what has torch, for gloo
  std::string mpirun = "mpirun";                // with its options, for MPI
};

/// `arguments` are argv without the program's name. Errors are one sentence, name the option and
/// say what is allowed.
core::Result<BenchCommandLine> parse_bench_command_line(const std::vector<std::string>& arguments);

}  // namespace fasthorovod::tools
