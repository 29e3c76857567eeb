#include "transport/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <system_error>

#include "core/build_id.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

core::Result<fs::path> find(const PluginKind& kind, const std::vector<fs::path>& folders) {
  std::string places;
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    std::error_code ignored;
    if (fs::exists(folder / kind.name, ignored)) return folder / kind.name;
    places += (places.empty() ? "" : " nor in ") + folder.string();
  }
  return Error{ErrorCode::kUnavailable,
               fmt::format("the plug-in {} is not in {}; {}", kind.name, places, kind.how_to_get)};
}

Error broken(const fs::path& path, std::string_view why) {
  return {ErrorCode::kUnavailable, fmt::format("the plug-in {}: {}", path.string(), why)};
}

}  // namespace

bool has_plugin(const PluginKind& kind, const std::vector<fs::path>& folders) {
  return find(kind, folders).has_value();
}

core::Result<const void*> open_plugin(const PluginKind& kind,
                                      const std::vector<fs::path>& folders) {
  const core::Result<fs::path> path = find(kind, folders);
  if (!path) return path.error();
  const int scope = kind.shares_symbols ? RTLD_GLOBAL : RTLD_LOCAL;
  void* const library = ::dlopen(path->c_str(), RTLD_NOW | scope);
  if (library == nullptr) return broken(*path, ::dlerror());  // NOLINT(concurrency-mt-unsafe)
  auto* const function = reinterpret_cast<const void* (*)()>(::dlsym(library, kind.symbol));
  if (function == nullptr) return broken(*path, "it is not a plug-in of fasthorovod");
  const void* const module = function();
  const auto& build = *static_cast<const PluginBuild*>(module);
  if (std::string_view(build.data(), build.size()) != core::build_id()) {
    return broken(*path, "it is of another build than this module; install both again");
  }
  return module;
}

}  // namespace fasthorovod::transport
