// The plug-in fasthorovod-hwloc: the machine as hwloc sees it (topology_module.h).
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "core/build_id.h"
#include "transport/topology_module.h"

namespace fasthorovod::transport {
namespace {

using core::Processor;

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

// All of the machine: a core keeps its name where a process may use a part of it only.
core::Result<Topology> load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return core::system_error("hwloc's start", errno);
  Topology topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0) return core::system_error("looking at the machine", errno);
  return topology;
}

// The processors next to the card of an interface; null where hwloc does not know the card.
hwloc_const_cpuset_t near_set(hwloc_topology_t topology, const std::string& interface) {
  hwloc_obj_t device = nullptr;
  while ((device = hwloc_get_next_osdev(topology, device)) != nullptr) {
    const bool is_network = device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
    if (!is_network || device->name == nullptr || interface != device->name) continue;
    const hwloc_obj_t around = hwloc_get_non_io_ancestor_obj(topology, device);
    return around == nullptr ? nullptr : around->cpuset;
  }
  return nullptr;
}

int core_of(hwloc_topology_t topology, hwloc_obj_t unit) {
  const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
  const int first = core == nullptr ? -1 : hwloc_bitmap_first(core->cpuset);
  return first < 0 ? static_cast<int>(unit->os_index) : first;
}

core::Result<std::vector<Processor>> processors(const std::string& interface) {
  const auto topology = load();
  if (!topology) return topology.error();
  hwloc_topology_t raw = topology->get();
  hwloc_const_cpuset_t near = near_set(raw, interface);
  if (near != nullptr &&
      hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(raw), near) != 0) {
    near = nullptr;  // all alike
  }
  std::vector<Processor> found;
  hwloc_obj_t unit = nullptr;
  while ((unit = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, unit)) != nullptr) {
    found.push_back({.id = static_cast<int>(unit->os_index),
                     .core = core_of(raw, unit),
                     .near = near != nullptr && hwloc_bitmap_isset(near, unit->os_index) != 0});
  }
  std::ranges::sort(found, {}, &Processor::id);
  return found;
}

TopologyModule describe() {
  TopologyModule module{.build = {}, .processors = &processors};
  core::build_id().copy(module.build.data(), module.build.size());
  return module;
}

}  // namespace
}  // namespace fasthorovod::transport

extern "C" __attribute__((visibility("default"))) const fasthorovod::transport::TopologyModule*
fasthorovod_topology_module() {
  static const fasthorovod::transport::TopologyModule module = fasthorovod::transport::describe();
  return &module;
}
