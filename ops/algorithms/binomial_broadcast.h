// Binomial-tree broadcast: in every step all ranks that have the buffer send it to one that has
// not.
//
// Idea: let `place` be a rank's distance behind the root. A rank's parent is its place with the
// lowest set bit cleared; its children are its place plus each power of two below that bit (below
// the next power of two >= size for the root). The child with the largest subtree is served first.
// Best for small buffers.
//
// Steps: ceil(log2 size). Bytes sent: S times the number of children.
//
// Source: R. Thakur et al., "Optimization of collective communication operations in MPICH", IJHPCA
// 2005, section 4.2.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule binomial_broadcast(const Shape& shape);

}  // namespace fasthorovod::ops
