// Puts auxiliaries on cores of their own, as FASTHOROVOD_AUX_PINNING says. Thread: any.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/aux_cores.h"
#include "core/log.h"
#include "core/result.h"
#include "transport/aux_process.h"
#include "transport/core_claim.h"

namespace fasthorovod::transport {

struct PinningPlace {
  std::string interface {};  // that carries the data
  int ranks_on_host = 1;     // this one included
  std::filesystem::path claims = CoreClaim::usual_folder();
};

/// Whether a list of processors is one for this process. `auxiliaries`: of this rank; 0 when they
/// are not counted yet. kInvalidArgument says what is wrong.
core::Status check_pinning(const core::AuxPinning& pinning, int auxiliaries);

/// Binds each of the processes, which serve nobody, to a core that no other auxiliary has, as long
/// as there are such; lets the others run where the system puts them. The cores are theirs as long
/// as the claims live. What could not be done is in the log.
std::vector<CoreClaim> pin(std::span<const AuxProcessPtr> processes,
                           const core::AuxPinning& pinning, const PinningPlace& place,
                           core::Log& log);

}  // namespace fasthorovod::transport
