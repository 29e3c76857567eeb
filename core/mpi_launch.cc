#include "core/mpi_launch.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace fasthorovod::core {
namespace {

constexpr int kMostRanks = 65536;

struct Launcher {
  std::string_view name;
  std::string_view rank;
  std::string_view size;
};

// Open MPI sets variables of PMIx, too; its own say more.
constexpr std::array kLaunchers{
    Launcher{"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"an MPI launcher (PMI)", "PMI_RANK", "PMI_SIZE"},
    Launcher{"srun (PMIx)", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
};

std::string_view value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

bool is_known_otherwise(const Environment& environment) {
  for (const char* name : {"FASTHOROVOD_RANK", "FASTHOROVOD_SIZE", "FASTHOROVOD_STORE",
                           "FASTHOROVOD_RENDEZVOUS", "HOROVOD_RANK", "HOROVOD_SIZE"}) {
    if (!value_of(environment, name).empty()) return true;
  }
  return false;
}

// A launcher may start torchrun on every host, whose workers inherit its variables. Programs under
// mpirun often set RANK and WORLD_SIZE themselves, to the same numbers.
bool is_of_torchrun(const Environment& environment, const Launcher& launcher) {
  if (!value_of(environment, "TORCHELASTIC_RUN_ID").empty()) return true;
  const std::string_view rank = value_of(environment, "RANK");
  const std::string_view size = value_of(environment, "WORLD_SIZE");
  if (rank.empty() || size.empty()) return false;
  return rank != value_of(environment, launcher.rank) ||
         size != value_of(environment, launcher.size);
}

Result<int> number(std::string_view name, std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (is_number && value >= least && value <= most) return value;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}=\"{}\" makes no sense: it takes {} to {}", name, text, least, most)};
}

Result<std::optional<MpiLaunch>> read(const Environment& environment, const Launcher& launcher) {
  MpiLaunch launch{.launcher = std::string(launcher.name)};
  auto size = number(launcher.size, value_of(environment, launcher.size), 1, kMostRanks);
  if (!size) return std::move(size).error().with_context(launcher.name);
  auto rank = number(launcher.rank, value_of(environment, launcher.rank), 0, *size - 1);
  if (!rank) return std::move(rank).error().with_context(launcher.name);
  launch.size = *size;
  launch.rank = *rank;
  return std::optional(std::move(launch));
}

}  // namespace

Result<std::optional<MpiLaunch>> find_mpi_launch(const Environment& environment) {
  if (is_known_otherwise(environment)) return std::optional<MpiLaunch>();
  for (const Launcher& launcher : kLaunchers) {
    if (value_of(environment, launcher.rank).empty()) continue;
    if (value_of(environment, launcher.size).empty()) continue;
    if (is_of_torchrun(environment, launcher)) continue;
    return read(environment, launcher);
  }
  return std::optional<MpiLaunch>();
}

}  // namespace fasthorovod::core
