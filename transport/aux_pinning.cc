#include "transport/aux_pinning.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/processor_list.h"
#include "transport/cores.h"
#include "transport/own_processors.h"
#include "transport/topology.h"

namespace fasthorovod::transport {
namespace {

using core::AuxCore;
using core::AuxPinning;
using core::Processor;

std::vector<Processor> usable_of(std::vector<Processor> machine, const OwnProcessors& own) {
  std::erase_if(machine, [&own](const Processor& processor) {
    return !std::ranges::binary_search(own.usable, processor.id);
  });
  return machine;
}

core::Result<core::AuxCoreNeeds> needs_of(int auxiliaries, const PinningPlace& place,
                                          core::Log& log) {
  auto machine = look_at_machine(place.interface, log);
  if (!machine) return std::move(machine).error();
  OwnProcessors own = own_processors();
  return core::AuxCoreNeeds{.processors = usable_of(*std::move(machine), own),
                            .bound = std::move(own.bound),
                            .most_cores = usable_cores(),
                            .ranks_on_host = place.ranks_on_host,
                            .auxiliaries = auxiliaries};
}

core::Result<std::vector<AuxCore>> cores_for(int auxiliaries, const AuxPinning& pinning,
                                             const PinningPlace& place, core::Log& log) {
  const bool is_auto = pinning.kind == AuxPinning::Kind::kAuto;
  // To look at the machine takes a while.
  if (is_auto && !core::may_spare(usable_cores(), place.ranks_on_host, auxiliaries)) {
    return std::vector<AuxCore>();
  }
  const auto needs = needs_of(auxiliaries, place, log);
  if (!needs) return needs.error();
  if (is_auto) return core::cores_to_spare(*needs);
  return core::listed_cores(pinning.processors, *needs);
}

// Takes the first of `cores` that nobody has, and drops those before it.
core::Result<std::optional<CoreClaim>> claim_next(std::vector<AuxCore>& cores,
                                                  const PinningPlace& place, AuxCore& taken) {
  while (!cores.empty()) {
    taken = std::move(cores.front());
    cores.erase(cores.begin());
    auto claim = CoreClaim::take(taken.core, place.claims);
    if (!claim || *claim) return claim;
  }
  return std::optional<CoreClaim>();
}

}  // namespace

core::Status check_pinning(const AuxPinning& pinning, int auxiliaries) {
  if (pinning.kind != AuxPinning::Kind::kList) return {};
  auto machine = look_at_sys("");
  if (!machine) return std::move(machine).error();
  const core::AuxCoreNeeds needs{.processors = usable_of(*std::move(machine), own_processors()),
                                 .auxiliaries = auxiliaries};
  const auto cores = core::listed_cores(pinning.processors, needs);
  return cores ? core::Status() : core::Status(cores.error());
}

std::vector<CoreClaim> pin(std::span<const AuxProcessPtr> processes, const AuxPinning& pinning,
                           const PinningPlace& place, core::Log& log) {
  std::vector<CoreClaim> claims;
  core::Result<std::vector<AuxCore>> cores = std::vector<AuxCore>{};
  if (pinning.kind != AuxPinning::Kind::kNone) {
    cores = cores_for(static_cast<int>(processes.size()), pinning, place, log);
  }
  const auto complain = [&log](const core::Error& error) {
    log.warning("auxiliaries run on any core (FASTHOROVOD_AUX_PINNING): " + error.message);
  };
  if (!cores) complain(cores.error());
  for (std::size_t index = 0; index < processes.size(); ++index) {
    AuxCore core;
    auto claim = cores ? claim_next(*cores, place, core) : std::optional<CoreClaim>();
    if (!claim) {
      complain(claim.error());
      cores = std::vector<AuxCore>{};
    }
    const bool has = claim && *claim;
    if (!has) core.processors.clear();
    const core::Status bound = processes[index]->bind(core.processors);
    if (!bound) {
      complain(bound.error());
    } else if (has) {
      log.info(fmt::format("auxiliary {} runs on processors {}", index,
                           core::to_processor_list(core.processors)));
      claims.push_back(*std::move(*claim));
    } else if (pinning.kind == AuxPinning::Kind::kList) {
      log.warning(fmt::format(
          "FASTHOROVOD_AUX_PINNING=\"{}\": other auxiliaries have these, so one of this rank runs "
          "on any core",
          core::to_processor_list(pinning.processors)));
    }
  }
  return claims;
}

}  // namespace fasthorovod::transport
