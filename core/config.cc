#include "core/config.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "core/lane_plan.h"
#include "core/mpi_launch.h"
#include "core/nearest_name.h"
#include "core/setting_kinds.h"

extern char** environ;  // NOLINT: POSIX declares no header for it

namespace fasthorovod::core {

namespace {

constexpr std::string_view kPrefix = "FASTHOROVOD_";

struct Row {
  Setting setting;
  SettingParser parse;
  std::span<const std::string_view> names{};  // where names are allowed: all of them
};

std::vector<Row> identity_rows() {
  return {
      {{"FASTHOROVOD_RANK", "HOROVOD_RANK", "0 to 65535, less than the size", "0",
        "this process's number among the ranks of the job"},
       integer_setting(&Config::rank, 0, 65535)},
      {{"FASTHOROVOD_SIZE", "HOROVOD_SIZE", "1 to 65536", "1",
        "how many ranks the job has; without rank and size the process is a world of one"},
       integer_setting(&Config::size, 1, 65536)},
      {{"FASTHOROVOD_STORE", "", "host:port", "",
        "the launcher's store, where the ranks meet (wins over the rendezvous)"},
       text_setting(&Config::store, is_host_and_port)},
      {{"FASTHOROVOD_RENDEZVOUS", "", "host:port", "",
        "an address of rank 0, which listens there; for ranks started by hand"},
       text_setting(&Config::rendezvous, is_host_and_port)},
      {{"FASTHOROVOD_SECRET_FILE", "", "a path", "",
        "the file that holds the job secret; needed by more than one rank"},
       text_setting(&Config::secret_file)},
      {{"FASTHOROVOD_REQUIRE_SECRET", "", "0 or 1", "0",
        "1 refuses a secret that rank 0 makes and shares through torch's store or MPI"},
       flag_setting(&Config::require_secret)},
      {{"FASTHOROVOD_JOB", "", "32 hex digits", "",
        "tells jobs on one network apart; derived from the secret when not set"},
       text_setting(&Config::job, [](std::string_view text) { return is_hex(text, 32); })},
      {{"FASTHOROVOD_HOST_IDENTITY", "", "any text", "",
        "ranks that give the same text share a host; overrides boot id and network namespace"},
       text_setting(&Config::host_identity)},
      {{"FASTHOROVOD_NETWORK_INTERFACE", "HOROVOD_GLOO_IFACE",
        "interface names, addresses or CIDR blocks, comma separated", "",
        "where to listen and connect from"},
       text_setting(&Config::network_interface)},
  };
}

std::vector<Row> behaviour_rows() {
  return {
      {{"FASTHOROVOD_START_TIMEOUT", "HOROVOD_START_TIMEOUT", "0.1 to 86400 seconds", "60",
        "how long all ranks may take to meet"},
       seconds_setting(&Config::start_timeout, 0.1, 86400)},
      {{"FASTHOROVOD_STALL_CHECK_TIME_SECONDS", "HOROVOD_STALL_CHECK_TIME_SECONDS",
        "0 to 1000000 seconds", "60",
        "warn when some ranks wait that long for the others' submission; 0 never warns"},
       seconds_setting(&Config::stall_warning, 0, 1e6)},
      {{"FASTHOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
        "0 to 1000000 seconds", "600", "fail an operation that waits that long; 0 never does"},
       seconds_setting(&Config::stall_limit, 0, 1e6)},
      {{"FASTHOROVOD_DATA_PLANE", "", "tcp or mpi", "tcp",
        "what carries data between ranks; mpi needs ranks that an MPI launcher started"},
       data_plane_setting(&Config::data_plane)},
      {{"FASTHOROVOD_LANES", "", "1 to 16, or auto", "auto (1 and the auxiliaries)",
        "event loops that move this rank's data, each with flows of its own"},
       integer_or_auto_setting(&Config::lanes, 1, kMostLanes)},
      {{"FASTHOROVOD_AUX", "", "0 to 16, or auto", "auto (0 to 4)",
        "how many of the lanes run in auxiliary processes"},
       integer_or_auto_setting(&Config::auxiliaries, 0, kMostAuxiliaries)},
      {{"FASTHOROVOD_AUX_PINNING", "", "auto, none, or processors such as 4-7,12", "auto",
        "on which cores auxiliaries run; auto binds them where cores are to spare"},
       aux_pinning_setting(&Config::aux_pinning)},
      {{"FASTHOROVOD_FLOWS", "", "1 to 64, or auto", "auto (up to 8)",
        "TCP connections of a lane to a peer; auto finds how many to send on"},
       integer_or_auto_setting(&Config::flows, 1, kMostFlowsOfALane)},
      {{"FASTHOROVOD_FLOW_RATE", "", "a rate such as 200mbit, 1gbit or 25MB; 0 for no limit", "0",
        "paces each flow to another host"},
       rate_setting(&Config::flow_rate)},
      {{"FASTHOROVOD_TCP_CONGESTION", "", "a name that the system knows, such as cubic or bbr",
        "the system's", "the congestion control of the connections that carry data"},
       text_setting(&Config::tcp_congestion, is_congestion_name)},
      {{"FASTHOROVOD_ARENA_MB", "", "16 to 1048576 MiB", "1024",
        "how much shared memory this rank uses at most; only what is in use takes room"},
       integer_setting(&Config::arena_mb, kLeastArenaMb, kMostArenaMb)},
      {{"FASTHOROVOD_SIMD", "", "auto, avx512, avx2, sse4 or scalar, as the processor has", "auto",
        "which instruction set reductions and codecs use; no bit of a result depends on it"},
       text_setting(&Config::simd)},
      {{"FASTHOROVOD_ALLREDUCE", "", "auto, ring-allreduce, two-hop-allreduce or one-hop-allreduce",
        "auto", "the algorithm of all-reduces between hosts; auto chooses by size"},
       allreduce_setting(&Config::allreduce),
       allreduce_algorithm_names()},
      {{"FASTHOROVOD_DETERMINISTIC", "", "0 or 1", "0",
        "1: nothing that is measured or timed chooses an algorithm or fuses tensors, so runs with "
        "the "
        "same ranks and sizes get the same bits"},
       flag_setting(&Config::deterministic)},
      {{"FASTHOROVOD_FUSION_THRESHOLD", "HOROVOD_FUSION_THRESHOLD", "0 to 17179869184 bytes",
        "67108864", "how much is fused into one operation at most; 0 turns fusion off"},
       integer_setting(&Config::fusion_threshold, 0, 17179869184)},
      {{"FASTHOROVOD_CACHE_CAPACITY", "HOROVOD_CACHE_CAPACITY", "0 to 262144", "4096",
        "how many requests are remembered, each then costing one bit; 0 turns the cache off"},
       integer_setting(&Config::cache_capacity, 0, 262144)},
      {{"FASTHOROVOD_LOG_LEVEL", "HOROVOD_LOG_LEVEL", "trace, debug, info, warning, error or off",
        "warning", "what is logged"},
       log_level_setting(&Config::log_level)},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> result = identity_rows();
    for (Row& row : behaviour_rows()) result.push_back(std::move(row));
    return result;
  }();
  return all;
}

// A variable set to nothing counts as not set, as shells make it easy to leave one behind.
const std::string* value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

bool has(const Environment& environment, std::string_view name) {
  return value_of(environment, name) != nullptr;
}

bool is_identity(const Setting& setting) {
  return setting.name == "FASTHOROVOD_RANK" || setting.name == "FASTHOROVOD_SIZE";
}

bool has_meeting_point(const Environment& environment) {
  return has(environment, "FASTHOROVOD_STORE") || has(environment, "FASTHOROVOD_RENDEZVOUS");
}

// HOROVOD_RANK and HOROVOD_SIZE alone may come from a job that is none of ours (a test suite sets
// them, a shell inherits them): they say who we are only where nothing of ours does and a meeting
// point shows that a job is meant.
bool alias_counts(const Environment& environment, const Setting& setting) {
  if (setting.horovod_alias.empty()) return false;
  if (!is_identity(setting)) return true;
  return has_meeting_point(environment) && !has(environment, "FASTHOROVOD_RANK") &&
         !has(environment, "FASTHOROVOD_SIZE");
}

Error bad_value(std::string_view variable, std::string_view value, std::string_view allowed) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}=\"{}\" is not allowed: it takes {}", variable, value, allowed)};
}

Status parse_row(const Row& row, const Environment& environment, ParsedConfig& parsed) {
  std::string_view variable = row.setting.name;
  const std::string* value = value_of(environment, variable);
  if (alias_counts(environment, row.setting)) {
    const std::string* other = value_of(environment, row.setting.horovod_alias);
    if (value != nullptr && other != nullptr && *value != *other) {
      parsed.warnings.push_back(fmt::format("{} and {} are both set; {} wins", variable,
                                            row.setting.horovod_alias, variable));
    } else if (value == nullptr) {
      value = other;
      variable = row.setting.horovod_alias;
    }
  }
  if (value == nullptr || row.parse(*value, parsed.config)) return {};
  Error error = bad_value(variable, *value, row.setting.allowed);
  const std::string_view nearest = nearest_name(*value, {row.names.begin(), row.names.end()});
  if (!nearest.empty()) error.message += fmt::format("; did you mean {}?", nearest);
  return error;
}

Error missing(std::string_view variable, std::string_view why) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} is not set, but {}", variable, why)};
}

// Whether a rank or a size was taken from the environment, under whichever name counts.
bool was_given(const Environment& environment, std::string_view suffix) {
  const std::string ours = fmt::format("FASTHOROVOD_{}", suffix);
  for (const Setting& setting : settings()) {
    if (setting.name != ours) continue;
    return has(environment, ours) ||
           (alias_counts(environment, setting) && has(environment, setting.horovod_alias));
  }
  return false;
}

Status take_mpi_launch(const Environment& environment, Config& config) {
  auto launch = find_mpi_launch(environment);
  if (!launch) return std::move(launch).error();
  if (!launch->has_value()) return {};
  config.rank = (*launch)->rank;
  config.size = (*launch)->size;
  config.mpi_launcher = (*launch)->launcher;
  return {};
}

Status check_identity(const Environment& environment, const Config& config) {
  if (!config.mpi_launcher.empty()) return {};
  const bool has_rank = was_given(environment, "RANK");
  const bool has_size = was_given(environment, "SIZE");
  if (has_rank && !has_size) return missing("FASTHOROVOD_SIZE", "a rank is given");
  if (has_size && !has_rank) return missing("FASTHOROVOD_RANK", "a size is given");
  if (!has_rank && has_meeting_point(environment)) {
    return missing("FASTHOROVOD_RANK", "a meeting point is given");
  }
  if (config.rank >= config.size) {
    return bad_value("FASTHOROVOD_RANK", std::to_string(config.rank),
                     fmt::format("0 to {} in a job of {}", config.size - 1, config.size));
  }
  if (config.size == 1) return {};
  if (!has_meeting_point(environment)) {
    return missing("FASTHOROVOD_STORE or FASTHOROVOD_RENDEZVOUS",
                   fmt::format("{} ranks need a place to meet", config.size));
  }
  if (config.secret_file.empty()) {
    return missing("FASTHOROVOD_SECRET_FILE",
                   fmt::format("{} ranks need a secret to trust each other", config.size));
  }
  return {};
}

Status check_lanes(const Config& config) {
  if (!config.lanes || config.auxiliaries.value_or(0) <= *config.lanes) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("FASTHOROVOD_AUX=\"{}\" is more than FASTHOROVOD_LANES=\"{}\": auxiliary "
                  "processes run some of the lanes",
                  *config.auxiliaries, *config.lanes)};
}

// MPI decides by itself what this library decides for TCP.
void settle_data_plane(const Environment& environment, ParsedConfig& parsed) {
  Config& config = parsed.config;
  if (config.data_plane == DataPlane::kTcp) return;
  for (const char* name : {"FASTHOROVOD_LANES", "FASTHOROVOD_AUX", "FASTHOROVOD_AUX_PINNING",
                           "FASTHOROVOD_FLOWS", "FASTHOROVOD_FLOW_RATE"}) {
    if (!has(environment, name)) continue;
    parsed.warnings.push_back(
        fmt::format("{} means nothing where FASTHOROVOD_DATA_PLANE is mpi", name));
  }
  config.lanes = 1;
  config.auxiliaries = 0;
  config.flows = 1;
  config.flow_rate = 0;
}

// What is fused depends on when tensors are submitted, and where a ring cuts a tensor on its place
// in the fused buffer. Bundles are fused all the same: they are named, not timed.
void settle_determinism(const Environment& environment, ParsedConfig& parsed) {
  if (!parsed.config.deterministic) return;
  for (const char* name : {"FASTHOROVOD_FUSION_THRESHOLD", "HOROVOD_FUSION_THRESHOLD"}) {
    if (!has(environment, name) || parsed.config.fusion_threshold == 0) continue;
    parsed.warnings.push_back(fmt::format(
        "{} means nothing with FASTHOROVOD_DETERMINISTIC=1, which turns fusion off", name));
  }
  parsed.config.fusion_threshold = 0;
}

void settle_meeting_point(ParsedConfig& parsed) {
  if (parsed.config.store.empty() || parsed.config.rendezvous.empty()) return;
  parsed.config.rendezvous.clear();
  parsed.warnings.push_back(
      "FASTHOROVOD_STORE and FASTHOROVOD_RENDEZVOUS are both set; FASTHOROVOD_STORE wins");
}

void warn_about_unknown(const Environment& environment, ParsedConfig& parsed) {
  std::vector<std::string_view> known;
  for (const Setting& setting : settings()) known.push_back(setting.name.substr(kPrefix.size()));
  for (auto at = environment.lower_bound(kPrefix); at != environment.end(); ++at) {
    const std::string_view name = at->first;
    if (!name.starts_with(kPrefix)) break;
    const std::string_view suffix = name.substr(kPrefix.size());
    bool is_known = false;
    for (const std::string_view each : known) is_known = is_known || each == suffix;
    if (is_known) continue;
    const std::string_view nearest = nearest_name(suffix, known);
    parsed.warnings.push_back(
        nearest.empty()
            ? fmt::format("{} is not a setting", name)
            : fmt::format("{} is not a setting; did you mean {}{}?", name, kPrefix, nearest));
  }
}

}  // namespace

std::string_view to_string(DataPlane plane) { return plane == DataPlane::kMpi ? "mpi" : "tcp"; }

Environment process_environment() {
  Environment environment;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

Result<ParsedConfig> parse_config(const Environment& environment) {
  ParsedConfig parsed;
  for (const Row& row : rows()) {
    if (auto status = parse_row(row, environment, parsed); !status)
      return std::move(status).error();
  }
  if (auto status = take_mpi_launch(environment, parsed.config); !status) {
    return std::move(status).error();
  }
  if (auto status = check_identity(environment, parsed.config); !status) {
    return std::move(status).error();
  }
  if (auto status = check_lanes(parsed.config); !status) return std::move(status).error();
  settle_data_plane(environment, parsed);
  settle_determinism(environment, parsed);
  settle_meeting_point(parsed);
  warn_about_unknown(environment, parsed);
  return parsed;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> result;
    for (const Row& row : rows()) result.push_back(row.setting);
    return result;
  }();
  return all;
}

}  // namespace fasthorovod::core
