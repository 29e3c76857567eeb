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
#include "tools/fasthorovod-bench/engine_steps.h"
#include "tools/fasthorovod-bench/gloo_contestant.h"
#include "tools/fasthorovod-bench/gloo_steps.h"
#include "tools/fasthorovod-bench/mpi_contestant.h"
#include "tools/fasthorovod-bench/plan.h"
#include "tools/fasthorovod-bench/step.h"
#include "tools/fasthorovod-bench/torchrun.h"

namespace {

using fasthorovod::core::Config;
using fasthorovod::core::Log;
using fasthorovod::core::Result;
namespace tools = fasthorovod::tools;

constexpr int kFailed = 1;
constexpr int kBadCommandLine = 2;
constexpr int kVoid = 3;

Result<Config> read_environment(Log& log) {
  auto environment = tools::understand_torchrun(fasthorovod::core::process_environment());
  if (!environment) return std::move(environment).error();
  auto parsed = fasthorovod::core::parse_config(*environment);
  if (!parsed) return std::move(parsed).error();
  for (const std::string& warning : parsed->warnings) log.warning(warning);
  return std::move(parsed->config);
}

// They start before the engine's threads and descriptors are there; torch loads while ranks meet.
struct Others {
  std::unique_ptr<tools::GlooContestant> gloo;
  std::unique_ptr<tools::MpiContestant> mpi;
};

Result<Others> start_others(const tools::BenchCommandLine& line, const Config& config) {
  Others others;
  if (line.gloo) {
    auto started = tools::GlooContestant::start(line.python, config);
    if (!started) return std::move(started).error();
    others.gloo = *std::move(started);
  }
  if (line.mpi) {
    auto started = tools::MpiContestant::start(line.mpirun, config);
    if (!started) return std::move(started).error();
    others.mpi = *std::move(started);
  }
  return others;
}

fasthorovod::core::Status meet(const Others& others, fasthorovod::ops::Engine& engine) {
  if (others.gloo != nullptr) {
    if (auto met = others.gloo->meet(engine); !met) return met;
  }
  return others.mpi == nullptr ? fasthorovod::core::Status() : others.mpi->meet(engine);
}

/// How many values were wrong.
Result<std::uint64_t> run_allreduce(const tools::BenchCommandLine& line, const Config& config,
                                    const Others& others, Log& log) {
  auto engine = fasthorovod::ops::Engine::start(config, 0, log);
  if (!engine) return std::move(engine).error();
  if (auto met = meet(others, **engine); !met) return std::move(met).error();
  tools::EngineContestant ours(**engine, line.allreduce);
  if (line.allreduce.back_to_back) return tools::run_back_to_back(**engine, ours, line.allreduce);
  std::vector<tools::Contestant*> contestants{&ours};
  if (others.gloo != nullptr) contestants.push_back(others.gloo.get());
  if (others.mpi != nullptr) contestants.push_back(others.mpi.get());
  return tools::run_allreduce((*engine)->world(), contestants, line.allreduce);
}

/// The same. Each turn has an engine of its own; the first one is for the ranks to meet.
Result<std::uint64_t> run_steps(const tools::BenchCommandLine& line, const Config& config,
                                const Others& others, Log& log) {
  tools::Epochs epochs;
  fasthorovod::core::World world;
  {
    auto engine = fasthorovod::ops::Engine::start(config, epochs.next(), log);
    if (!engine) return std::move(engine).error();
    if (auto met = meet(others, **engine); !met) return std::move(met).error();
    world = (*engine)->world();
  }
  const auto gradients = tools::backward_gradients(line.step.model.layers(), line.step.scale);
  tools::EngineSteps ours("fasthorovod", config, gradients, epochs, log);
  std::vector<std::unique_ptr<tools::StepContestant>> rest;
  if (others.gloo != nullptr) {
    rest.push_back(std::make_unique<tools::GlooSteps>(*others.gloo, gradients, line.step.scale));
  }
  if (line.one_flow) {
    Config one_flow = config;
    one_flow.lanes = 1;
    one_flow.auxiliaries = 0;
    one_flow.flows = 1;
    rest.push_back(
        std::make_unique<tools::EngineSteps>("one-flow", one_flow, gradients, epochs, log));
  }
  std::vector<tools::StepContestant*> contestants{&ours};
  for (const auto& contestant : rest) contestants.push_back(contestant.get());
  return tools::run_steps(world, contestants, line.step, gradients);
}

Result<std::uint64_t> run_plan(const tools::BenchCommandLine& line, const Config& config,
                               Log& log) {
  auto engine = fasthorovod::ops::Engine::start(config, 0, log);
  if (!engine) return std::move(engine).error();
  auto done = tools::run_plan(**engine, config, line.plan_options);
  if (!done) return std::move(done).error();
  return 0;
}

Result<std::uint64_t> run(const tools::BenchCommandLine& line, Log& log) {
  Result<Config> config = read_environment(log);
  if (!config) return std::move(config).error();
  if (line.plan) return run_plan(line, *config, log);
  Result<Others> others = start_others(line, *config);
  if (!others) return std::move(others).error();
  return line.steps ? run_steps(line, *config, *others, log)
                    : run_allreduce(line, *config, *others, log);
}

int report_placement(const tools::PlacementOptions& options, Log& log) {
  const Result<bool> counts = tools::run_placement(options, log);
  if (counts) return *counts ? 0 : kVoid;
  fmt::print(stderr, "fasthorovod-bench: {}\n", counts.error().message);
  return kFailed;
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
  if (line->placement) return report_placement(*line->placement, log);
  const Result<std::uint64_t> wrong = run(*line, log);
  if (!wrong) {
    fmt::print(stderr, "fasthorovod-bench: {}\n", wrong.error().message);
    return kFailed;
  }
  if (*wrong != 0) fmt::print(stderr, "fasthorovod-bench: {} values were wrong\n", *wrong);
  return *wrong == 0 ? 0 : kFailed;
}
