// Every setting, parsed once from the environment. Names are FASTHOROVOD_<X>; where Horovod has the
// setting too, HOROVOD_<X> is accepted as an alias (ours wins when both are set). Immutable; any
// thread.
//
// The settings are rows of one table (config.cc): name, alias, allowed range, default, meaning.
// Parsing, error texts and the documentation come from that table.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/aux_cores.h"
#include "core/cost_model.h"
#include "core/log.h"
#include "core/result.h"

namespace fasthorovod::core {

/// What carries chunks between ranks. Wire values: only append.
enum class DataPlane : std::uint8_t { kTcp = 0, kMpi = 1 };

/// "tcp" or "mpi".
std::string_view to_string(DataPlane plane);

/// Sixty-four-bit byte rates, e.g. of one flow.
using BytesPerSecond = std::uint64_t;

inline constexpr int kLeastArenaMb = 16;
inline constexpr int kMostArenaMb = 1 << 20;

// Beside each field stands the variable that sets it; settings() says what it takes.
struct Config {
  // Who this process is: given by the launcher, by hand or by another starter. Without rank and
  // size, and without an MPI launcher, it is a world of one.
  int rank = 0;                   // RANK
  int size = 1;                   // SIZE
  std::string store;              // STORE: the launcher's; "" when there is none
  std::string rendezvous;         // RENDEZVOUS: rank 0 listens there; "" when a store is used
  std::string secret_file;        // SECRET_FILE: "" in a world of one, or where rank 0 makes one
  bool require_secret = false;    // REQUIRE_SECRET: rank 0 may not make one and share it
  std::string job;                // JOB: 32 hex digits; "" derives it from the secret
  std::string mpi_launcher;       // which MPI launcher said rank and size; "" for none. No variable
  std::string host_identity;      // HOST_IDENTITY: overrides boot id and network namespace
  std::string network_interface;  // NETWORK_INTERFACE: names, addresses or CIDR, comma separated

  // Limits.
  std::chrono::milliseconds start_timeout{60'000};  // START_TIMEOUT: all ranks must be here
  std::chrono::milliseconds stall_warning{60'000};  // STALL_CHECK_TIME_SECONDS: 0 never warns
  std::chrono::milliseconds stall_limit{600'000};   // STALL_SHUTDOWN_TIME_SECONDS: 0 never fails

  // How bytes move.
  DataPlane data_plane = DataPlane::kTcp;  // DATA_PLANE
  std::optional<int> lanes;                // LANES: event loops of a rank; nothing: auto
  std::optional<int> auxiliaries;          // AUX: of those, in auxiliary processes; nothing: auto
  AuxPinning aux_pinning;                  // AUX_PINNING: on which cores these run
  int cores = 0;                 // this process may use; 0: as the system says. No variable
  std::optional<int> flows;      // FLOWS: TCP connections of a lane to a peer
  BytesPerSecond flow_rate = 0;  // FLOW_RATE: of a flow to another host; 0 no limit
  std::string tcp_congestion;    // TCP_CONGESTION: of flows, by name; "" keeps the system's
  int arena_mb = 1024;           // ARENA_MB: MiB of shared memory at most
  std::string simd = "auto";     // SIMD: the instruction set of kernels, by name
  std::optional<AllreduceAlgorithm> allreduce;   // ALLREDUCE: between hosts; nothing: auto
  bool deterministic = false;                    // DETERMINISTIC: nothing measured chooses
  std::optional<ProcessorCosts> processor;       // as measured here, if it was. No variable
  std::uint64_t fusion_threshold = 64ull << 20;  // FUSION_THRESHOLD: bytes; 0 turns fusion off
  std::uint32_t cache_capacity = 4096;           // CACHE_CAPACITY: requests; 0 turns it off

  LogLevel log_level = LogLevel::kWarning;  // LOG_LEVEL
};

/// A parsed configuration and what the user should hear about it (unknown names with the nearest
/// match, settings given twice). The caller logs the warnings.
struct ParsedConfig {
  Config config;
  std::vector<std::string> warnings;
};

/// Environment variables by name; tests pass what they like.
using Environment = std::map<std::string, std::string, std::less<>>;

/// The environment of this process.
Environment process_environment();

/// Parses `environment`. A bad value is an error that says the variable, what was given and what is
/// allowed; so is half an identity (a rank without a size, several ranks without a meeting point or
/// a secret). Ranks that an MPI launcher started (mpi_launch.h) need neither.
Result<ParsedConfig> parse_config(const Environment& environment);

/// One row of the table, for documentation and tests.
struct Setting {
  std::string_view name;           // FASTHOROVOD_X
  std::string_view horovod_alias;  // HOROVOD_X, or ""
  std::string_view allowed;        // for people: "1 to 64, or auto"
  std::string_view default_text;
  std::string_view meaning;
};
const std::vector<Setting>& settings();

/// "200mbit", "1gbit", "25MB": bits or bytes a second as tc writes them (decimal). Shared with the
/// launcher.
Result<BytesPerSecond> parse_rate(std::string_view text);

}  // namespace fasthorovod::core
