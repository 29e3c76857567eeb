// What the plug-in fasthorovod-hwloc offers, so that nothing else is linked with hwloc and one
// build of this one loads on every host.
//
// The plug-in exports one function, named kTopologyModuleSymbol, that returns a const
// TopologyModule*.
#pragma once

#include <string>
#include <vector>

#include "core/aux_cores.h"
#include "core/result.h"
#include "transport/plugin.h"

namespace fasthorovod::transport {

struct TopologyModule {
  PluginBuild build;
  /// As look_at_machine() (topology.h), by hwloc.
  core::Result<std::vector<core::Processor>> (*processors)(const std::string& interface);
};

inline constexpr const char* kTopologyModuleSymbol = "fasthorovod_topology_module";

}  // namespace fasthorovod::transport
