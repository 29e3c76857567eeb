#include "transport/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "transport/core_quota.h"

namespace fasthorovod::transport {
namespace {

int scheduled_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return std::max(CPU_COUNT(&allowed), 1);
  }
  // Fails on a machine with more cores than the set has room for.
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

}  // namespace

int usable_cores() {
  const int cores = scheduled_cores();
  return std::min(cores, core_quota().value_or(cores));
}

}  // namespace fasthorovod::transport
