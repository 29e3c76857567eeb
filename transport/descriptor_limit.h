// Whether this process may open as many descriptors as a rank needs. Asked before a start, so that
// a limit that is too low is one sentence rather than a failure somewhere later.
//
// Stateless; any thread.
#pragma once

#include <cstddef>

#include "core/config.h"
#include "core/result.h"

namespace fasthorovod::transport {

/// About how many a rank uses besides what the program has open: sockets, event loops, the memory
/// of its mates, what its lanes need, and flows to the two neighbours in the ring. Peers that want
/// more flows, and operations between all ranks, come on top.
std::size_t descriptors_needed(const core::Config& config);

/// kUnavailable when the limit leaves fewer. The error says the limit, what is open and what is
/// needed.
core::Status check_descriptors(const core::Config& config);

}  // namespace fasthorovod::transport
