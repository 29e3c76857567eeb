// Dissemination barrier: nobody leaves before everybody has come.
//
// Idea: in round k every rank tells the rank 2^k places ahead that it, and all it has heard of,
// have come; it does so once it has heard from its rounds before k. After the last round news of
// every rank has reached every rank.
//
// Steps: ceil(log2 size). Bytes sent: 0 (headers only).
//
// Source: D. Hensgen, R. Finkel and U. Manber, "Two algorithms for barrier synchronization", IJPP
// 1988.
#pragma once

#include "ops/schedule.h"

namespace fasthorovod::ops {

Schedule dissemination_barrier(const Shape& shape);

}  // namespace fasthorovod::ops
