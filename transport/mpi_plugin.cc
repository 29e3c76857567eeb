#include "transport/mpi_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <system_error>

#include "core/build_id.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

constexpr std::string_view kName = "fasthorovod-mpi.so";

core::Result<fs::path> find(const std::vector<fs::path>& folders) {
  std::string places;
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    std::error_code ignored;
    if (fs::exists(folder / kName, ignored)) return folder / kName;
    places += (places.empty() ? "" : " nor in ") + folder.string();
  }
  return Error{ErrorCode::kUnavailable,
               fmt::format("the plug-in {} is not in {}; it is built where an MPI library is found "
                           "(Debian: apt install libopenmpi-dev, then install fasthorovod again)",
                           kName, places)};
}

Error broken(const fs::path& path, std::string_view why) {
  return {ErrorCode::kUnavailable, fmt::format("the plug-in {}: {}", path.string(), why)};
}

}  // namespace

core::Result<Mpi*> open_mpi_plugin(const std::vector<fs::path>& folders) {
  const core::Result<fs::path> path = find(folders);
  if (!path) return path.error();
  // Parts of an MPI library are plug-ins themselves and may look for its symbols among those of
  // all.
  void* const library = ::dlopen(path->c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return broken(*path, ::dlerror());  // NOLINT(concurrency-mt-unsafe)
  auto* const function = reinterpret_cast<MpiModuleFunction*>(::dlsym(library, kMpiModuleSymbol));
  if (function == nullptr) return broken(*path, "it is not a plug-in of fasthorovod");
  const MpiModule* const module = function();
  if (std::string_view(module->build.data(), module->build.size()) != core::build_id()) {
    return broken(*path, "it is of another build than this module; install both again");
  }
  return &module->mpi();
}

bool has_mpi_plugin(const std::vector<fs::path>& folders) { return find(folders).has_value(); }

}  // namespace fasthorovod::transport
