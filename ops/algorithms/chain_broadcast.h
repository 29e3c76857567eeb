// Chain broadcast: chunks pass along all ranks in a row, one behind the other.
//
// Idea: ranks stand in a chain that starts at the root. Each passes a chunk on as soon as it has
// it, so with c chunks all links are busy except while the pipeline fills and drains. Best for
// large buffers.
//
// Steps: c + size - 2, with c = ceil(S / chunk) chunks. Bytes sent: S by every rank but the last of
// the chain, which sends nothing.
//
// Source: the pipelined chain of J. Pjesivac-Grbovic et al., "Performance analysis of MPI
// collective operations", Cluster Computing 2007.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule chain_broadcast(const Shape& shape);

}  // namespace fasthorovod::ops
