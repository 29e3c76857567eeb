#include "tools/fasthorovod-bench/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>

#include "compression/codec_table.h"
#include "core/lane_plan.h"
#include "tools/fasthorovod-bench/choices.h"
#include "tools/fasthorovod-bench/sizes.h"
#include "tools/fasthorovod-bench/step_command_line.h"

namespace fasthorovod::tools {
namespace {

constexpr int kMostIterations = 1'000'000;
constexpr int kMostRepetitions = 1000;
constexpr double kMostSeconds = 86400;
constexpr std::int64_t kMostFactor = 1'000'000'000;
constexpr int kRepetitionsBesideOthers = 5;
constexpr const char* kStandardOutput = "-";

constexpr const char* kFooter =
    "time is in microseconds: of each iteration that of the slowest rank, of these the median, "
    "and\n"
    "of the repetitions the median again. An iteration fills the buffer, lines the ranks up with "
    "a\n"
    "small all-reduce, times one all-reduce in place, and checks every value, bit by bit. algbw "
    "is\n"
    "size / time and busbw algbw * 2 (n - 1) / n for n ranks, both in GB/s (1e9 bytes). #wrong "
    "counts\n"
    "values of all ranks.\n"
    "\n"
    "With --backend each repetition runs FastHorovod's iterations, then gloo's in a Python "
    "process\n"
    "beside each rank. time/gloo is the median over the repetitions of our time by gloo's, which\n"
    "includes torch's call from Python. gloo's address is that of the way to rank 0;\n"
    "GLOO_SOCKET_IFNAME overrides it.\n"
    "\n"
    "Ranks are started by fasthorovodrun, by hand with the FASTHOROVOD_* variables, or by\n"
    "torchrun --no-python, then with FASTHOROVOD_SECRET_FILE set; rank 0 listens at MASTER_ADDR,\n"
    "port 20000 + (MASTER_PORT + 5000) mod 10000, unless FASTHOROVOD_RENDEZVOUS says otherwise.\n"
    "Alone it measures a world of one.";

constexpr const char* kPlanFooter =
    "Runs some all-reduces, then says what all ranks have chosen: lanes and where they run, flows\n"
    "between each two ranks, congestion control; each with what it is: measured, default, or "
    "forced\n"
    "by a variable. --seconds is how long it waits for the numbers of flows to be found; it stops\n"
    "sooner when they are.";

constexpr const char* kPlacementFooter =
    "The first run measures what it costs this machine to send, receive, add and copy a byte, and\n"
    "keeps that in the user's cache folder, where ranks find it, too: auto of FASTHOROVOD_AUX "
    "follows\n"
    "from it. Then each round predicts and measures a lane that has a core to itself, one beside "
    "a\n"
    "thread that always wants the same core, and one beside a thread that fills the last-level "
    "cache.\n"
    "Rounds in which others use more than 5 % of the processors do not count; if there are too "
    "many,\n"
    "the result is void and the exit status 3.";

/// Options as texts, before they are checked.
struct Texts {
  std::string first = "4K";
  std::string last = "64M";
  std::int64_t factor = 4;
  std::string increment;             // empty: by the factor
  std::vector<std::string> sizes{};  // not empty: these in place of all of the above
  std::string type = "float32";
  std::string reduction = "sum";
  std::string door;  // empty: ordered, or named with a codec
  std::string codec = "none";
  std::string memory = "ordinary";
  std::vector<std::string> backends;
};

core::Error bad_option(std::string message) {
  return {core::ErrorCode::kInvalidArgument, std::move(message)};
}

std::string codec_help() {
  std::string text = "encodes float32 sums and averages on the wire:";
  for (const compression::CodecInfo& codec : compression::codec_table()) {
    const bool first = codec.id == core::CodecId::kNone;
    text += fmt::format("{} {}{} ({})", first ? "" : ";", codec.name,
                        codec.needs_threshold ? ":THRESHOLD" : "", codec.summary);
  }
  return text;
}

void declare_sizes(CLI::App& command, Texts& texts) {
  command.add_option("-b,--minbytes", texts.first, "smallest size, e.g. 4K")->capture_default_str();
  command.add_option("-e,--maxbytes", texts.last, "largest size, e.g. 256M")->capture_default_str();
  CLI::Option* factor =
      command.add_option("-f,--stepfactor", texts.factor, "factor between sizes, at least 2")
          ->check(CLI::Range(std::int64_t{2}, kMostFactor))
          ->capture_default_str();
  command.add_option("-i,--stepbytes", texts.increment, "bytes between sizes, in place of -f")
      ->excludes(factor);
  command.add_option("--sizes", texts.sizes, "these sizes instead, e.g. 4K,1M,64M")
      ->delimiter(',')
      ->excludes("--minbytes", "--maxbytes", "--stepfactor", "--stepbytes");
}

void declare_operation(CLI::App& command, Texts& texts) {
  command
      .add_option("-t,-d,--datatype", texts.type,
                  "int8 to int64, uint8 to uint64, bool, float16 (or half), bfloat16, float32 (or "
                  "float), float64 (or double)")
      ->capture_default_str();
  command.add_option("-o,--op", texts.reduction, "sum, prod, min, max or avg")
      ->capture_default_str();
  command.add_option("--door", texts.door,
                     "ordered, as calls of torch.distributed, or named, as those of "
                     "fasthorovod.torch, which rank 0 negotiates; [ordered, with --codec named]");
  command.add_option("--codec", texts.codec, codec_help())->capture_default_str();
  command
      .add_option("--memory", texts.memory,
                  "where our buffers are: ordinary, or arena, the memory that the ranks of a host "
                  "share")
      ->capture_default_str();
}

void declare_measurement(CLI::App& command, Texts& texts, BenchCommandLine& line) {
  AllreduceOptions& options = line.allreduce;
  command.add_option("-n,--iters", options.iterations, "timed iterations of a repetition")
      ->check(CLI::Range(1, kMostIterations))
      ->capture_default_str();
  command.add_option("-w,--warmup_iters", options.warm_up, "iterations before timing starts")
      ->check(CLI::Range(0, kMostIterations))
      ->capture_default_str();
  command
      .add_option(
          "--repetitions", options.repetitions,
          fmt::format("of each size; [{} with --backend, else 1]", kRepetitionsBesideOthers))
      ->check(CLI::Range(1, kMostRepetitions));
  command
      .add_option("--backend", texts.backends,
                  "runs it beside ours, taking turns: gloo, which needs torch, or mpi, which needs "
                  "mpirun and fasthorovod-bench-mpi, built where MPI was found")
      ->delimiter(',');
  command.add_option("--python", line.python, "the Python that has torch, for --backend gloo")
      ->capture_default_str();
  command
      .add_option("--mpirun", line.mpirun,
                  "the command and its own options, for --backend mpi, which rank 0 starts; they "
                  "say where MPI's processes run")
      ->capture_default_str();
  command.add_flag("--back-to-back", options.back_to_back,
                   "nothing between the iterations; results are checked before and after them");
  command
      .add_option("--budget", options.budget_s,
                  "with --back-to-back: seconds for the iterations of a size, in place of -n")
      ->check(CLI::Range(0.001, kMostSeconds));
  command.add_flag("--json", options.json, "one JSON object a line");
  command.add_option("--trace", options.trace,
                     "also write one line for each iteration (size, iteration, microseconds) to "
                     "a file, or to standard output (-)");
}

void declare_plan(CLI::App& command, PlanOptions& options) {
  command.footer(kPlanFooter);
  command.add_option("--seconds", options.seconds, "for the all-reduces of 16 MiB, at most")
      ->check(CLI::Range(0.0, kMostSeconds))
      ->capture_default_str();
  command.add_flag("--json", options.json, "one JSON object");
}

core::Result<std::vector<std::uint64_t>> listed_sizes(const Texts& texts,
                                                      std::size_t element_bytes) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : texts.sizes) {
    core::Result<std::uint64_t> size = parse_size(text);
    if (!size) return std::move(size).error().with_context("--sizes");
    if (*size < element_bytes) {
      return bad_option(
          fmt::format("--sizes: one {} has {} bytes, {} is less", texts.type, element_bytes, text));
    }
    sizes.push_back(*size);
  }
  return sizes;
}

core::Result<std::vector<std::uint64_t>> sizes_of(const Texts& texts, std::size_t element_bytes) {
  if (!texts.sizes.empty()) return listed_sizes(texts, element_bytes);
  core::Result<std::uint64_t> first = parse_size(texts.first);
  if (!first) return std::move(first).error().with_context("--minbytes");
  core::Result<std::uint64_t> last = parse_size(texts.last);
  if (!last) return std::move(last).error().with_context("--maxbytes");
  if (*first != 0 && *first < element_bytes) {
    return bad_option(fmt::format("--minbytes: one {} has {} bytes, so sizes start there",
                                  texts.type, element_bytes));
  }
  if (texts.increment.empty())
    return size_steps(*first, *last, static_cast<std::uint64_t>(texts.factor));
  core::Result<std::uint64_t> increment = parse_size(texts.increment);
  if (!increment) return std::move(increment).error().with_context("--stepbytes");
  return size_increments(*first, *last, *increment);
}

core::Status read_operation(const Texts& texts, AllreduceOptions& options) {
  core::Result<core::DataType> type = parse_type(texts.type);
  if (!type) return std::move(type).error();
  core::Result<core::Reduction> reduction = parse_reduction(texts.reduction);
  if (!reduction) return std::move(reduction).error();
  core::Result<BenchMemory> memory = parse_memory(texts.memory);
  if (!memory) return std::move(memory).error();
  options.type = *type;
  options.reduction = *reduction;
  options.memory = *memory;
  return {};
}

core::Status read_codec(const Texts& texts, AllreduceOptions& options) {
  core::Result<core::CodecChoice> codec = compression::parse_codec(texts.codec);
  if (!codec) return std::move(codec).error().with_context("--codec");
  const std::string_view usual_door = codec->encodes() ? "named" : "ordered";
  core::Result<BenchDoor> door = parse_door(texts.door.empty() ? usual_door : texts.door);
  if (!door) return std::move(door).error();
  options.codec = *codec;
  options.door = *door;
  if (!codec->encodes()) return {};
  const bool adds =
      options.reduction == core::Reduction::kSum || options.reduction == core::Reduction::kAverage;
  if (adds && options.type == core::DataType::kFloat32 && *door == BenchDoor::kNamed) return {};
  return bad_option(fmt::format(
      "--codec {} goes with --datatype float32, --op sum or avg, and --door named", texts.codec));
}

// What mpi_worker.cc has a name of MPI for.
core::Status check_mpi(const AllreduceOptions& options) {
  const bool small = options.type == core::DataType::kFloat16 ||
                     options.type == core::DataType::kBfloat16 ||
                     options.type == core::DataType::kBool;
  if (!small && options.reduction != core::Reduction::kAverage) return {};
  return bad_option(
      "--backend mpi goes with integers, float32 and float64, and with sum, prod, min and max");
}

core::Status read_backends(const Texts& texts, BenchCommandLine& line) {
  for (const std::string& backend : texts.backends) {
    if (backend != "gloo" && backend != "mpi") {
      return bad_option(fmt::format("--backend: '{}' is none of gloo, mpi", backend));
    }
    (backend == "gloo" ? line.gloo : line.mpi) = true;
  }
  if (line.mpi) {
    if (core::Status can = check_mpi(line.allreduce); !can) return can;
  }
  if (line.allreduce.repetitions == 0) {
    line.allreduce.repetitions = line.gloo || line.mpi ? kRepetitionsBesideOthers : 1;
  }
  return {};
}

core::Status check_back_to_back(const BenchCommandLine& line) {
  const AllreduceOptions& options = line.allreduce;
  if (!options.back_to_back) {
    return options.budget_s > 0 ? core::Status(bad_option("--budget goes with --back-to-back"))
                                : core::Status();
  }
  if (line.gloo || line.mpi || options.repetitions > 1) {
    return bad_option(
        "--back-to-back measures FastHorovod alone, once: it goes without --backend "
        "and --repetitions");
  }
  return {};
}

CLI::App* declare_placement(CLI::App& app, PlacementOptions& options) {
  CLI::App* command = app.add_subcommand(
      "placement", "what a lane carries where it runs, predicted and measured; no other ranks");
  command->footer(kPlacementFooter);
  command->add_option("--rounds", options.rounds, "of each placement")
      ->check(CLI::Range(1, kMostRepetitions))
      ->capture_default_str();
  command->add_option("--time", options.time_ms, "milliseconds of each measurement")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  command
      ->add_option("--auxiliaries", options.auxiliaries,
                   "measure the gain of so many, also where cores are too few for that; [1, 2, and "
                   "4 where there are 8 cores, or 16]")
      ->check(CLI::Range(1, core::kMostAuxiliaries));
  command->add_flag("--fresh", options.fresh, "calibrate, also where that was done before");
  command->add_flag("--model", options.model,
                    "print costs and the model, and measure nothing else");
  command->add_flag("--json", options.json, "one JSON object a line");
  return command;
}

core::Status read_texts(const Texts& texts, BenchCommandLine& line) {
  AllreduceOptions& options = line.allreduce;
  core::Status done = read_operation(texts, options);
  if (done) done = read_codec(texts, options);
  if (done) done = read_backends(texts, line);
  if (done) done = check_back_to_back(line);
  if (!done) return done;
  if (options.json && options.trace == kStandardOutput) {
    return bad_option("--trace - and --json do not both fit on standard output; name a file");
  }
  const std::size_t element_bytes = core::size_of(options.type);
  core::Result<std::vector<std::uint64_t>> sizes = sizes_of(texts, element_bytes);
  if (!sizes) return std::move(sizes).error();
  for (const std::uint64_t bytes : *sizes) {
    const std::uint64_t count = bytes / element_bytes;
    const bool is_new = options.counts.empty() || options.counts.back() != count;
    if (is_new) options.counts.push_back(count);
  }
  return {};
}

}  // namespace

core::Result<BenchCommandLine> parse_bench_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("Measures FastHorovod's collectives between ranks.", "fasthorovod-bench");
  CLI::App* command = app.add_subcommand("allreduce", "all-reduce in place, every result checked");
  command->footer(kFooter);
  Texts texts;
  BenchCommandLine line;
  declare_sizes(*command, texts);
  declare_operation(*command, texts);
  declare_measurement(*command, texts, line);
  CLI::App* steps = app.add_subcommand("step", "the gradients of a model in training steps");
  StepArguments step_arguments;
  step_arguments.declare(*steps, line);
  CLI::App* plan = app.add_subcommand("plan", "what was chosen, after a short calibration");
  declare_plan(*plan, line.plan_options);
  PlacementOptions placement;
  const CLI::App* placements = declare_placement(app, placement);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    line.help = app.help();
    return line;
  } catch (const CLI::Error& error) {
    return bad_option(error.what());
  }
  if (app.get_subcommands().size() != 1)
    return bad_option("say what to measure: allreduce, step, plan or placement");
  if (placements->parsed()) {
    line.placement = placement;
    return line;
  }
  line.steps = steps->parsed();
  line.plan = plan->parsed();
  if (line.plan) return line;
  core::Status read = line.steps ? step_arguments.read(line) : read_texts(texts, line);
  if (!read) return std::move(read).error();
  return line;
}

}  // namespace fasthorovod::tools
