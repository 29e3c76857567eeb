#include "transport/mpi_plugin.h"

#include "transport/plugin.h"

namespace fasthorovod::transport {
namespace {

// Parts of an MPI library are plug-ins themselves and may look for its symbols among those of all.
constexpr PluginKind kKind{
    .name = "fasthorovod-mpi.so",
    .symbol = kMpiModuleSymbol,
    .how_to_get =
        "it is built where an MPI library is found (Debian: apt install libopenmpi-dev, "
        "then install fasthorovod again)",
    .shares_symbols = true};

}  // namespace

core::Result<Mpi*> open_mpi_plugin(const std::vector<std::filesystem::path>& folders) {
  const auto module = open_plugin(kKind, folders);
  if (!module) return module.error();
  return &static_cast<const MpiModule*>(*module)->mpi();
}

bool has_mpi_plugin(const std::vector<std::filesystem::path>& folders) {
  return has_plugin(kKind, folders);
}

}  // namespace fasthorovod::transport
