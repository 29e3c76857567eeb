// fasthorovod-bench: measures the engine between ranks, without Python. Started by fasthorovodrun,
// or by hand with the FASTHOROVOD_* variables; alone it measures a world of one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/config.h"
#include "core/log.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/allreduce.h"
#include "tools/fasthorovod-bench/sizes.h"

namespace {

using fasthorovod::core::Error;
using fasthorovod::core::Log;
using fasthorovod::core::Result;
namespace tools = fasthorovod::tools;

struct CommandLine {
  std::string first = "4K";
  std::string last = "64M";
  std::uint64_t factor = 4;
  std::string increment;  // empty: by the factor
  tools::AllreduceOptions allreduce;
};

void describe(CLI::App& app, CommandLine& line) {
  app.require_subcommand(1);
  CLI::App* command =
      app.add_subcommand("allreduce", "all-reduce of float32, in place, every result checked");
  command->add_option("-b,--minbytes", line.first, "smallest size, e.g. 4K")->capture_default_str();
  command->add_option("-e,--maxbytes", line.last, "largest size, e.g. 256M")->capture_default_str();
  CLI::Option* factor =
      command->add_option("-f,--stepfactor", line.factor, "factor between sizes, at least 2")
          ->capture_default_str();
  command->add_option("-i,--stepbytes", line.increment, "bytes between sizes, in place of -f")
      ->excludes(factor);
  command->add_option("-n,--iters", line.allreduce.iterations, "timed iterations a size")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("-w,--warmup_iters", line.allreduce.warm_up, "iterations before timing starts")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", line.allreduce.json, "one JSON object a line");
}

Result<std::vector<std::uint64_t>> sizes_of(const CommandLine& line) {
  Result<std::uint64_t> first = tools::parse_size(line.first);
  if (!first) return first.error();
  Result<std::uint64_t> last = tools::parse_size(line.last);
  if (!last) return last.error();
  if (line.increment.empty()) return tools::size_steps(*first, *last, line.factor);
  Result<std::uint64_t> increment = tools::parse_size(line.increment);
  if (!increment) return increment.error();
  return tools::size_increments(*first, *last, *increment);
}

Result<std::uint64_t> run(CommandLine& line, Log& log) {
  Result<std::vector<std::uint64_t>> sizes = sizes_of(line);
  if (!sizes) return sizes.error();
  line.allreduce.sizes = *sizes;
  auto parsed = fasthorovod::core::parse_config(fasthorovod::core::process_environment());
  if (!parsed) return parsed.error();
  for (const std::string& warning : parsed->warnings) log.warning(warning);
  auto engine = fasthorovod::ops::Engine::start(parsed->config, 0, log);
  if (!engine) return engine.error();
  return tools::run_allreduce(**engine, line.allreduce);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures FastHorovod's collectives between ranks.", "fasthorovod-bench");
  CommandLine line;
  describe(app, line);
  CLI11_PARSE(app, argc, argv);

  Log log(fasthorovod::core::LogLevel::kWarning,
          [](fasthorovod::core::LogLevel, std::string_view text) {
            fmt::print(stderr, "fasthorovod-bench: {}\n", text);
          });
  const Result<std::uint64_t> wrong = run(line, log);
  if (!wrong) {
    fmt::print(stderr, "fasthorovod-bench: {}\n", wrong.error().message);
    return 1;
  }
  if (*wrong != 0) fmt::print(stderr, "fasthorovod-bench: {} values were wrong\n", *wrong);
  return *wrong == 0 ? 0 : 1;
}
