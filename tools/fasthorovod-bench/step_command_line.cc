#include "tools/fasthorovod-bench/step_command_line.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace fasthorovod::tools {
namespace {

constexpr double kMostMs = 1e6;
constexpr std::uint64_t kMostScale = 1'000'000;
constexpr int kMostSteps = 1'000'000;

constexpr const char* kFooter =
    "A step sleeps through a third of its computation (the forward pass), then through the rest,\n"
    "while gradients become ready as the work of the model's layers has it, and ends when all "
    "have\n"
    "been summed. step is the time of the slowest rank: of the steps of a repetition the median,\n"
    "and of the repetitions the median again. exposed is step less compute: the communication "
    "that\n"
    "the computation did not hide. it/ours is the median over the repetitions of the other's time\n"
    "by ours.\n"
    "\n"
    "one-flow is this engine with one lane and one TCP connection to each peer. gloo gets buckets\n"
    "as DistributedDataParallel makes them, divided by the scale as the gradients are.";

std::string model_help() {
  std::string text = "one of";
  for (const TrainingModel& model : training_models()) text += fmt::format(" {}", model.name);
  return text;
}

core::Error bad_option(std::string message) {
  return {core::ErrorCode::kInvalidArgument, std::move(message)};
}

}  // namespace

void StepArguments::declare(CLI::App& command, BenchCommandLine& line) {
  StepOptions& options = line.step;
  command.footer(kFooter);
  command.add_option("--model", model_, model_help())->capture_default_str();
  command
      .add_option("--scale", options.scale, "divides the number of elements of each gradient by it")
      ->check(CLI::Range(std::uint64_t{1}, kMostScale))
      ->capture_default_str();
  CLI::Option* compute =
      command
          .add_option("--compute", compute_ms_,
                      "milliseconds that a step computes, one or several with commas; [0]")
          ->delimiter(',')
          ->check(CLI::Range(0.0, kMostMs));
  command
      .add_option("--exposed", exposed_percent_,
                  "percent of its step that the last backend leaves exposed: finds the computation "
                  "at which it does")
      ->check(CLI::Range(1.0, 99.0))
      ->excludes(compute);
  command.add_option("-n,--steps", options.steps, "timed steps of a repetition")
      ->check(CLI::Range(1, kMostSteps))
      ->capture_default_str();
  command.add_option("-w,--warmup_steps", options.warm_up, "steps before timing starts")
      ->check(CLI::Range(0, kMostSteps))
      ->capture_default_str();
  command.add_option("--repetitions", options.repetitions, "of each row")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--backend", backends_,
                  "runs it beside ours, taking turns: one-flow, or gloo, which needs torch")
      ->delimiter(',');
  command.add_option("--python", line.python, "the Python that has torch, for --backend gloo")
      ->capture_default_str();
  command.add_flag("--json", options.json, "one JSON object a line");
}

core::Status StepArguments::read(BenchCommandLine& line) const {
  core::Result<TrainingModel> model = find_training_model(model_);
  if (!model) return std::move(model).error().with_context("--model");
  line.step.model = *model;
  line.step.compute_ms = compute_ms_;
  if (exposed_percent_ > 0) {
    line.step.exposed = exposed_percent_ / 100;
  } else if (compute_ms_.empty()) {
    line.step.compute_ms = {0};
  }
  for (const std::string& backend : backends_) {
    if (backend != "one-flow" && backend != "gloo") {
      return bad_option(fmt::format("--backend: '{}' is none of one-flow, gloo", backend));
    }
    (backend == "gloo" ? line.gloo : line.one_flow) = true;
  }
  if (!line.step.exposed || line.one_flow) return {};
  return bad_option("--exposed goes with --backend one-flow, which it is about");
}

}  // namespace fasthorovod::tools
