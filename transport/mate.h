// Another rank of this host, and its memory.
#pragma once

#include "transport/arena.h"

namespace fasthorovod::transport {

struct Mate {
  int rank = 0;
  Arena arena;
};

}  // namespace fasthorovod::transport
