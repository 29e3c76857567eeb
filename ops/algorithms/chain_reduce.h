// Chain reduce: chunks pass along all ranks in a row towards the root, every rank adding its own.
//
// Idea: ranks stand in a chain that ends at the root. The last one sends its values; each other
// rank adds what comes to its own and passes the chunk on at once, so with c chunks all links are
// busy except while the pipeline fills and drains. The order of additions is the order of the
// chain. The buffers of the other ranks are left as partial sums.
//
// Steps: c + size - 2, with c = ceil(S / chunk) chunks. Bytes sent: S by every rank but the root,
// which sends nothing.
//
// Source: the chain broadcast, backwards; J. Pjesivac-Grbovic et al., "Performance analysis of MPI
// collective operations", Cluster Computing 2007.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule chain_reduce(const Shape& shape);

}  // namespace fasthorovod::ops
