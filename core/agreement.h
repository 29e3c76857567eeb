// Whether ranks ask for the same thing, and the sentences that say how they do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/membership.h"
#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::core {

class KnownTensor;

/// True when the requests of two ranks make one operation: everything equal, but an all-gather's
/// dimension 0 is each rank's own.
bool agree(const Request& a, const Request& b);

/// Why a tensor that every active rank of its group submitted cannot run, or nothing when it can.
std::optional<Error> verdict(const KnownTensor& tensor, const Membership& membership);

/// "rank 0, 2 to 5, 7", in the order given, which is ascending.
std::string describe_ranks(const std::vector<int>& ranks);

/// "float32 [3, 4]"; "[*, 4]" for an all-gather, whose dimension 0 may differ.
std::string describe_type_and_shape(const Request& request);

}  // namespace fasthorovod::core
