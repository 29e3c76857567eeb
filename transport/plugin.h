// Shared objects that are opened when they are needed, so that the rest loads where the libraries
// they are linked with are missing. Thread: any.
#pragma once

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fasthorovod::transport {

/// What a plug-in's function returns begins with this: core::build_id() of the plug-in. The rest is
/// looked at only when it equals that of the reader.
using PluginBuild = std::array<char, 16>;

struct PluginKind {
  std::string_view name;        // of the file
  const char* symbol;           // of the function, which takes nothing and returns a const pointer
  std::string_view how_to_get;  // "it is built where ..."
  bool shares_symbols = false;  // what it is linked with looks for symbols among those of all
};

/// Whether one of the folders has it; whether it can be opened is another question.
bool has_plugin(const PluginKind& kind, const std::vector<std::filesystem::path>& folders);

/// What the plug-in of the first folder that has one returns; it stays open for the life of the
/// process. kUnavailable: no folder has it, its library can not be loaded, or it is of another
/// build; the message says which, and what to do.
core::Result<const void*> open_plugin(const PluginKind& kind,
                                      const std::vector<std::filesystem::path>& folders);

}  // namespace fasthorovod::transport
