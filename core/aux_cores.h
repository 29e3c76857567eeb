// On which cores a rank's auxiliaries run: near the network card, away from the program's threads,
// and on none unless the host has cores to spare. What the machine looks like is told in plain
// values. Pure; any thread.
#pragma once

#include <set>
#include <vector>

#include "core/result.h"

namespace fasthorovod::core {

/// One processor as the system numbers them. Those of one core (hyper-threads) share it.
struct Processor {
  int id = 0;
  int core = 0;  // the lowest processor on the same core, used or not: the core's name on this host
  bool near = false;  // to the network card; all alike where that is unknown

  friend bool operator==(const Processor&, const Processor&) = default;
};

/// FASTHOROVOD_AUX_PINNING.
struct AuxPinning {
  enum class Kind { kAuto, kNone, kList };
  Kind kind = Kind::kAuto;
  std::vector<int> processors{};  // kList: those to use, best first

  friend bool operator==(const AuxPinning&, const AuxPinning&) = default;
};

/// A core for one auxiliary.
struct AuxCore {
  int core = 0;                 // its name on this host
  std::vector<int> processors;  // what the auxiliary is bound to

  friend bool operator==(const AuxCore&, const AuxCore&) = default;
};

/// How many cores of a host a rank and its program want for themselves.
inline constexpr int kCoresOfARank = 4;

/// Whether each of the ranks on a host of so many cores keeps kCoresOfARank besides its
/// auxiliaries.
bool may_spare(int cores, int ranks_on_host, int auxiliaries);

struct AuxCoreNeeds {
  std::vector<Processor> processors{};  // that this process may use
  std::set<int> bound{};  // of these, those that single threads of the program are bound to
  int most_cores = 0;     // that may be busy at a time; 0: all
  int ranks_on_host = 1;  // they share the cores
  int auxiliaries = 0;    // of each rank
};

/// What `auto` chooses: cores for auxiliaries, best first. More than this rank needs, since others
/// take theirs from the same list; none where each rank would not keep kCoresOfARank. Near ones
/// first, and of these the last, because programs and interrupts begin at the first.
std::vector<AuxCore> cores_to_spare(const AuxCoreNeeds& needs);

/// Those that were listed. kInvalidArgument when the process may not use one of them, two are of
/// one core, or they are fewer than one rank's auxiliaries.
Result<std::vector<AuxCore>> listed_cores(const std::vector<int>& list, const AuxCoreNeeds& needs);

}  // namespace fasthorovod::core
