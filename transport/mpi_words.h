// How the ranks of an MPI launcher agree on a job before they connect.
//
// Each rank but rank 0 asks it, with a number that nobody used before; rank 0 waits until all have
// asked and answers each under its number, with one answer for all: what the job's proof is, or why
// there can be no job. So nothing that is left of an earlier attempt misleads anybody.
//
// Thread: any. The waits end by the deadline (kTimedOut).
#pragma once

#include <cstdint>
#include <string>

#include "core/clock.h"
#include "core/config.h"
#include "core/result.h"
#include "transport/mpi_mail.h"

namespace fasthorovod::transport {

struct MpiWord {
  std::string secret;         // that rank 0 made; "": all ranks have a file
  std::uint64_t attempt = 0;  // this one; no other has the same number
};

/// What the ranks share from now on; all get the same, or an error for the same reason.
core::Result<MpiWord> agree_over_mpi(MpiMail& mail, const core::Config& config,
                                     core::TimePoint deadline);

}  // namespace fasthorovod::transport
