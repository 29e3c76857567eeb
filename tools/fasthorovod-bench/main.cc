// fasthorovod-bench: measures the engine between ranks, without Python. Started by fasthorovodrun,
// by torchrun, or by hand with the FASTHOROVOD_* variables; alone it measures a world of one.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/allreduce.h"
#include "tools/fasthorovod-bench/back_to_back_run.h"
#include "tools/fasthorovod-bench/command_line.h"
#include "tools/fasthorovod-bench/engine_contestant.h"
#include "tools/fasthorovod-bench/gloo_contestant.h"
#include "tools/fasthorovod-bench/mpi_contestant.h"
#include "tools/fasthorovod-bench/torchrun.h"

namespace {

using fasthorovod::core::Config;
using fasthorovod::core::Log;
using fasthorovod::core::Result;
namespace tools = fasthorovod::tools;

constexpr int kFailed = 1;
constexpr int kBadCommandLine = 2;

Result<Config> read_environment(Log& log) {
  auto environment = tools::understand_torchrun(fasthorovod::core::process_environment());
  if (!environment) return std::move(environment).error();
  auto parsed = fasthorovod::core::parse_config(*environment);
  if (!parsed) return std::move(parsed).error();
  for (const std::string& warning : parsed->warnings) log.warning(warning);
  return std::move(parsed->config);
}

/// How many values were wrong.
Result<std::uint64_t> run(const tools::BenchCommandLine& line, Log& log) {
  Result<Config> config = read_environment(log);
  if (!config) return std::move(config).error();
  // Before the engine's threads and descriptors are there; torch loads while the ranks meet.
  std::unique_ptr<tools::GlooContestant> gloo;
  if (line.gloo) {
    auto started = tools::GlooContestant::start(line.python, *config);
    if (!started) return std::move(started).error();
    gloo = *std::move(started);
  }
  std::unique_ptr<tools::MpiContestant> mpi;
  if (line.mpi) {
    auto started = tools::MpiContestant::start(line.mpirun, *config);
    if (!started) return std::move(started).error();
    mpi = *std::move(started);
  }
  auto engine = fasthorovod::ops::Engine::start(*config, 0, log);
  if (!engine) return std::move(engine).error();
  tools::EngineContestant ours(**engine, line.allreduce.door, line.allreduce.codec);
  if (line.allreduce.back_to_back) return tools::run_back_to_back(**engine, ours, line.allreduce);
  std::vector<tools::Contestant*> contestants{&ours};
  if (gloo != nullptr) {
    if (auto met = gloo->meet(**engine); !met) return std::move(met).error();
    contestants.push_back(gloo.get());
  }
  if (mpi != nullptr) {
    if (auto met = mpi->meet(**engine); !met) return std::move(met).error();
    contestants.push_back(mpi.get());
  }
  return tools::run_allreduce((*engine)->world(), contestants, line.allreduce);
}

}  // namespace

int main(int argc, char** argv) {
  Log log(fasthorovod::core::LogLevel::kWarning,
          [](fasthorovod::core::LogLevel, std::string_view text) {
            fmt::print(stderr, "fasthorovod-bench: {}\n", text);
          });
  const auto line = tools::parse_bench_command_line({argv + 1, argv + argc});
  if (!line) {
    fmt::print(stderr, "fasthorovod-bench: {}\n", line.error().message);
    return kBadCommandLine;
  }
  if (!line->help.empty()) {
    fmt::print("{}", line->help);
    return 0;
  }
  const Result<std::uint64_t> wrong = run(*line, log);
  if (!wrong) {
    fmt::print(stderr, "fasthorovod-bench: {}\n", wrong.error().message);
    return kFailed;
  }
  if (*wrong != 0) fmt::print(stderr, "fasthorovod-bench: {} values were wrong\n", *wrong);
  return *wrong == 0 ? 0 : kFailed;
}
