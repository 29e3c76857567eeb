// What a lane carries, and what auxiliaries add to a rank: reckoned from what each part costs a
// core (lane_costs.h). Pure; any thread.
//
// For each byte that a lane sends and one that it receives its core takes
//   send + (1 - added) * receive + added * (receive_scratch + add)
// and for each chunk the calls of the system and its part of a turn of the loop. How much of what
// is on its way has left the core's own cache when it is touched again decides between the costs of
// a queue that is close and one that is far: chunks and scratches of all flows, both ways.
#pragma once

#include <cstddef>

#include "core/lane_costs.h"

namespace fasthorovod::core {

/// Bytes a second, each way.
using Goodput = double;

/// What a lane is given to carry.
struct LaneLoad {
  std::size_t chunk_bytes = std::size_t{256} << 10;
  int flows = 4;
  double added = 0.5;  // of what comes, the part that is added and not just put down
};

/// What else happens where it runs.
enum class LaneSetting {
  kAlone,
  kBusyCore,     // another thread always wants the same core
  kHungryCache,  // one on another core fills the last-level cache
};

/// 0 when that setting was not measured.
Goodput lane_goodput(const LaneCosts& costs, const LaneLoad& load, LaneSetting setting);

/// A rank with auxiliaries, on a host of which all ranks are alike.
struct RankSite {
  int cores = 16;        // of the host
  int ranks = 1;         // on it
  bool in_arena = true;  // its tensors lie in shared memory; else they are staged for auxiliaries
  LaneLoad load{};
};

/// What the rank's own lane carries, and each auxiliary with a core of its own.
struct LaneGoodputs {
  Goodput own = 0;
  Goodput auxiliary = 0;
  Goodput staged = 0;  // by all auxiliaries together, at most: one thread of the rank copies
};
LaneGoodputs goodputs_of(const LaneCosts& costs, const RankSite& site);

/// What the rank carries, were the link no limit. Auxiliaries beyond the cores that its program
/// leaves share one with a busy thread.
Goodput rank_goodput(const LaneCosts& costs, const RankSite& site, int auxiliaries);

/// How many auxiliaries, beside a lane that carries `own`, fill the rank's part of a link; no more
/// than `most`. A last twentieth is worth none.
int auxiliaries_to_fill(Goodput link, Goodput own, Goodput auxiliary, int most);

}  // namespace fasthorovod::core
