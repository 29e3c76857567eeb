#include "tools/fasthorovod-bench/torchrun.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace fasthorovod::tools {
namespace {

std::string_view value_of(const core::Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

bool is_known_otherwise(const core::Environment& environment) {
  for (const char* name : {"FASTHOROVOD_RANK", "FASTHOROVOD_SIZE", "FASTHOROVOD_STORE",
                           "HOROVOD_RANK", "HOROVOD_SIZE"}) {
    if (!value_of(environment, name).empty()) return true;
  }
  return false;
}

core::Error missing(std::string_view name) {
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("{} is not set, but RANK and WORLD_SIZE are, as torchrun sets them", name)};
}

core::Error no_secret(std::string_view size) {
  return {
      core::ErrorCode::kInvalidArgument,
      fmt::format("FASTHOROVOD_SECRET_FILE is not set, but {} ranks started as by torchrun need "
                  "a secret to trust each other: make a file of at least 16 bytes, the same on "
                  "every host",
                  size)};
}

core::Result<int> parse_port(std::string_view text) {
  constexpr int kMostPort = 65535;
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc{} && end == text.data() + text.size() && port >= 1 && port <= kMostPort) {
    return port;
  }
  return core::Error{
      core::ErrorCode::kInvalidArgument,
      fmt::format("MASTER_PORT=\"{}\" is not allowed: it takes 1 to {}", text, kMostPort)};
}

/// An IPv6 address stands in brackets where a port follows.
core::Result<std::string> rendezvous(const core::Environment& environment) {
  const std::string_view host = value_of(environment, "MASTER_ADDR");
  const std::string_view port = value_of(environment, "MASTER_PORT");
  if (host.empty()) return missing("MASTER_ADDR");
  if (port.empty()) return missing("MASTER_PORT");
  core::Result<int> master_port = parse_port(port);
  if (!master_port) return std::move(master_port).error();
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && host.front() != '[';
  return fmt::format(fmt::runtime(bare_ipv6 ? "[{}]:{}" : "{}:{}"), host,
                     torchrun_port(*master_port));
}

}  // namespace

int torchrun_port(int master_port) {
  constexpr int kFirst = 20000;
  constexpr int kPorts = 10000;
  return kFirst + (master_port + kPorts / 2) % kPorts;
}

core::Result<core::Environment> understand_torchrun(core::Environment environment) {
  const std::string rank(value_of(environment, "RANK"));
  const std::string size(value_of(environment, "WORLD_SIZE"));
  if (rank.empty() || size.empty() || is_known_otherwise(environment)) return environment;
  environment["FASTHOROVOD_RANK"] = rank;
  environment["FASTHOROVOD_SIZE"] = size;
  if (size == "1") return environment;
  if (value_of(environment, "FASTHOROVOD_SECRET_FILE").empty()) return no_secret(size);
  if (!value_of(environment, "FASTHOROVOD_RENDEZVOUS").empty()) return environment;
  core::Result<std::string> place = rendezvous(environment);
  if (!place) return std::move(place).error();
  environment["FASTHOROVOD_RENDEZVOUS"] = *std::move(place);
  return environment;
}

}  // namespace fasthorovod::tools
