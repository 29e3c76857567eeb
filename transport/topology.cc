#include "transport/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include "core/lane_plan.h"
#include "core/processor_list.h"
#include "transport/plugin.h"
#include "transport/topology_module.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;
using core::Processor;

constexpr PluginKind kKind{
    .name = "fasthorovod-hwloc.so",
    .symbol = kTopologyModuleSymbol,
    .how_to_get =
        "it is built where hwloc is found (Debian: apt install libhwloc-dev, then install "
        "fasthorovod again)"};

// Empty when there is no such file, or it holds no list.
std::vector<int> list_in(const fs::path& file) {
  std::string text;
  if (!(std::ifstream(file) >> text)) return {};
  return core::parse_processor_list(text).value_or(std::vector<int>{});
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// A name from the system, but it becomes part of a path.
bool is_interface_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

}  // namespace

core::Result<std::vector<Processor>> look_at_sys(const std::string& interface,
                                                 const fs::path& root) {
  const fs::path cpus = root / "devices/system/cpu";
  const std::vector<int> online = list_in(cpus / "online");
  if (online.empty()) {
    return core::Error{core::ErrorCode::kUnavailable,
                       fmt::format("{} does not say which processors there are", cpus.string())};
  }
  std::vector<int> near;
  if (is_interface_name(interface)) {
    near = list_in(root / "class/net" / interface / "device/local_cpulist");
  }
  const bool all_near = near.size() >= online.size();
  std::vector<Processor> processors;
  for (const int id : online) {
    const fs::path folder = cpus / fmt::format("cpu{}", id) / "topology";
    const std::vector<int> siblings = list_in(folder / "thread_siblings_list");
    processors.push_back({.id = id,
                          .core = siblings.empty() ? id : *std::ranges::min_element(siblings),
                          .near = !all_near && std::ranges::find(near, id) != near.end()});
  }
  return processors;
}

core::Result<std::vector<Processor>> look_at_machine(const std::string& interface, core::Log& log,
                                                     const std::vector<fs::path>& plugins) {
  const auto module = open_plugin(kKind, plugins);
  if (module) {
    auto processors = static_cast<const TopologyModule*>(*module)->processors(interface);
    if (processors) return processors;
    log.info(fmt::format("hwloc: {}; the kernel is asked instead", processors.error().message));
  } else {
    log.info(fmt::format("no hwloc, the kernel is asked instead: {}", module.error().message));
  }
  return look_at_sys(interface);
}

std::vector<int> cache_sharers(int processor, const fs::path& root) {
  const fs::path caches = root / "devices/system/cpu" / fmt::format("cpu{}", processor) / "cache";
  int last_level = 0;
  std::vector<int> sharers;
  for (int index = 0; is_there(caches / fmt::format("index{}", index)); ++index) {
    const fs::path cache = caches / fmt::format("index{}", index);
    int level = 0;
    if (!(std::ifstream(cache / "level") >> level) || level < last_level) continue;
    last_level = level;
    sharers = list_in(cache / "shared_cpu_list");
  }
  return sharers;
}

int link_mbit(const std::string& interface, const fs::path& root) {
  if (!is_interface_name(interface)) return 0;
  const fs::path folder = root / "class/net" / interface;
  if (!is_there(folder / "device") && !is_there(folder / "bonding")) return 0;
  int mbit = 0;
  if (!(std::ifstream(folder / "speed") >> mbit)) return 0;  // not while the link is down
  return std::clamp(mbit, 0, core::kMostMbit);
}

}  // namespace fasthorovod::transport
