#include "tools/fasthorovodrun/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>

#include "core/config.h"

namespace fasthorovod::tools {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kLongestStartTimeoutS = 86400;
// Put before every value on its way through CLI11, which would take a value in brackets ("[::1]")
// for a list.
constexpr char kGuard = '=';

/// Options as texts, before they are checked.
struct Texts {
  bool help = false;
  bool version = false;
  bool check_build = false;
  bool verbose = false;
  bool gloo = false;
  bool mpi = false;
  bool jsrun = false;
  std::string ranks;
  std::string hosts;
  std::string virtual_hosts;
  std::string virtual_rate;
  std::string output_directory;
  std::string start_timeout;
  std::vector<std::string> interfaces;
};

core::Error bad_option(std::string message) {
  return {core::ErrorCode::kInvalidArgument, std::move(message)};
}

void declare_job(CLI::App& app, Texts& texts) {
  app.add_option("--num-proc", texts.ranks, "How many ranks to start; also written -np N")
      ->type_name("N");
  app.add_option("-H,--hosts", texts.hosts,
                 "Where they run, as name:slots,...; this version knows this machine only")
      ->type_name("HOSTS");
  app.add_option("--virtual-hosts", texts.virtual_hosts,
                 "Let the ranks of this machine behave as K hosts")
      ->type_name("K");
  app.add_option("--virtual-rate", texts.virtual_rate,
                 "Limit each connection between two hosts, as in 200mbit")
      ->type_name("RATE");
  app.add_option("--network-interface,--network-interfaces", texts.interfaces,
                 "Names, addresses or CIDR ranges to use, separated by commas")
      ->type_name("LIST");
  app.add_option("--start-timeout", texts.start_timeout,
                 "Seconds until all ranks must have found each other")
      ->type_name("S");
}

void declare_launcher(CLI::App& app, Texts& texts) {
  app.add_option("--output-filename", texts.output_directory,
                 "Also write DIR/rank.<rank>/stdout and stderr")
      ->type_name("DIR");
  app.add_flag("-v,--verbose", texts.verbose,
               "Print placement, command, and where settings come from");
  app.add_flag("--gloo", texts.gloo, "Accepted for Horovod's sake: TCP is the only controller");
  app.add_flag("--mpi", texts.mpi, "Not in this version");
  app.add_flag("--jsrun", texts.jsrun, "Not in this version");
  app.add_flag("--check-build", texts.check_build, "Print what is built in; also written -cb");
  app.add_flag("--version", texts.version, "Print the version");
  app.add_flag("-h,--help", texts.help, "Print this text");
}

void declare_options(CLI::App& app, Texts& texts) {
  app.name("fasthorovodrun");
  app.set_help_flag();
  declare_job(app, texts);
  declare_launcher(app, texts);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  app.footer(
      "Options end at the first argument that is none, or at --. The command is started N times,\n"
      "without a shell; each rank finds its number in HOROVOD_RANK and reads nothing from "
      "standard\n"
      "input. Every line of output is printed as [rank]<stdout>:text; a carriage return ends a "
      "line\n"
      "too, and a line of more than 64 KiB is printed in pieces.");
}

/// Horovod's options of one dash and two letters, which no parser of the usual kind knows.
std::string spelled_out(const std::string& argument) {
  if (argument == "-np" || argument.starts_with("-np=")) return "--num-proc" + argument.substr(3);
  if (argument == "-cb") return "--check-build";
  return argument;
}

struct OneOption {
  std::string name;                  // as given
  std::optional<std::string> value;  // given in the same argument
};

OneOption take_apart(const std::string& argument) {
  if (!argument.starts_with("--")) {
    OneOption option{argument.substr(0, 2), std::nullopt};
    if (argument.size() > 2) option.value = argument.substr(2);
    return option;
  }
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

/// The launcher's own options, one argument each ("--name" or "--name=value"), and the command.
struct SplitLine {
  std::vector<std::string> options;
  std::vector<std::string> command;
};

core::Result<SplitLine> split_line(const CLI::App& app, const std::vector<std::string>& arguments) {
  SplitLine line;
  std::size_t at = 0;
  for (; at < arguments.size() && arguments[at] != "--" && is_option(arguments[at]); ++at) {
    OneOption one = take_apart(spelled_out(arguments[at]));
    const CLI::Option* known = app.get_option_no_throw(one.name);
    if (known == nullptr) return bad_option(fmt::format("unknown option '{}'", arguments[at]));
    std::string argument = "--" + known->get_lnames().front();
    if (known->get_items_expected_max() == 0) {
      if (one.value) return bad_option(fmt::format("option {} takes no value", one.name));
    } else {
      if (!one.value && at + 1 < arguments.size()) one.value = arguments[++at];
      if (!one.value || one.value->empty()) {
        return bad_option(fmt::format("option {} needs a value", arguments[at]));
      }
      argument.append("=").append(1, kGuard).append(*one.value);
    }
    line.options.push_back(std::move(argument));
  }
  if (at < arguments.size() && arguments[at] == "--") ++at;
  line.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
  return line;
}

void remove_guard(std::string& value) {
  if (!value.empty()) value.erase(0, 1);
}

void remove_guards(Texts& texts) {
  for (std::string* value : {&texts.ranks, &texts.hosts, &texts.virtual_hosts, &texts.virtual_rate,
                             &texts.output_directory, &texts.start_timeout}) {
    remove_guard(*value);
  }
  for (std::string& value : texts.interfaces) remove_guard(value);
}

/// Reads a whole number into `out`; an empty text leaves it alone.
core::Status read_number(std::string_view option, const std::string& text, int most, int& out) {
  if (text.empty()) return {};
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
    return bad_option(
        fmt::format("{}: '{}' is not a whole number from 1 to {}", option, text, most));
  }
  out = value;
  return {};
}

core::Status read_rate(const std::string& text, Options& options) {
  if (text.empty()) return {};
  core::Result<core::BytesPerSecond> rate = core::parse_rate(text);
  if (!rate) return std::move(rate).error().with_context("--virtual-rate");
  options.virtual_rate = text;
  return {};
}

core::Status read_hosts(const std::string& text, Options& options) {
  if (text.empty()) return {};
  core::Result<std::vector<Host>> hosts = parse_hosts(text);
  if (!hosts) return std::move(hosts).error();
  options.hosts = std::move(*hosts);
  return {};
}

core::Status refuse_other_controllers(const Texts& texts) {
  if (!texts.mpi && !texts.jsrun) return {};
  return bad_option(fmt::format(
      "{} is not in this version; without it the launcher starts the ranks itself, over TCP",
      texts.mpi ? "--mpi" : "--jsrun"));
}

core::Status read_values(const Texts& texts, Options& options) {
  core::Status done = refuse_other_controllers(texts);
  if (done) done = read_number("-np", texts.ranks, kMostRanks, options.ranks);
  if (done) done = read_hosts(texts.hosts, options);
  if (done) {
    done = read_number("--virtual-hosts", texts.virtual_hosts, kMostRanks, options.virtual_hosts);
  }
  if (done) done = read_rate(texts.virtual_rate, options);
  if (done) {
    done = read_number("--start-timeout", texts.start_timeout, kLongestStartTimeoutS,
                       options.start_timeout_s);
  }
  return done;
}

core::Status check_complete(const Options& options) {
  if (options.ranks == 0) return bad_option("say how many ranks to start: -np N");
  if (options.command.empty()) return bad_option("say what to start: a command after the options");
  if (options.command.front().empty()) return bad_option("the command is an empty name");
  return {};
}

core::Result<Texts> parse_texts(CLI::App& app, Texts& texts,
                                const std::vector<std::string>& options) {
  try {
    app.parse(std::vector<std::string>(options.rbegin(), options.rend()));
  } catch (const CLI::Error& error) {
    return bad_option(error.what());
  }
  remove_guards(texts);
  return texts;
}

}  // namespace

core::Result<Options> parse_options(const std::vector<std::string>& arguments) {
  CLI::App app;
  Texts bound;
  declare_options(app, bound);
  core::Result<SplitLine> line = split_line(app, arguments);
  if (!line) return std::move(line).error();
  core::Result<Texts> texts = parse_texts(app, bound, line->options);
  if (!texts) return std::move(texts).error();

  Options options{.help = texts->help,
                  .version = texts->version,
                  .check_build = texts->check_build,
                  .verbose = texts->verbose,
                  .output_directory = texts->output_directory,
                  .network_interface = fmt::format("{}", fmt::join(texts->interfaces, ",")),
                  .command = std::move(line->command)};
  if (options.help || options.version || options.check_build) return options;
  core::Status checked = read_values(*texts, options);
  if (checked) checked = check_complete(options);
  if (!checked) return std::move(checked).error();
  return options;
}

std::string help_text() {
  CLI::App app;
  Texts texts;
  declare_options(app, texts);
  const std::string text = app.help();
  return "Usage: fasthorovodrun -np N [options] command [its arguments]\n\n" +
         text.substr(std::min(text.find("Options:"), text.size()));
}

}  // namespace fasthorovod::tools
