// Which rank sits where. Pure.
//
// Ranks are dense by host, in the order in which hosts were given. A cross rank counts, among the
// hosts that have a rank with the same local rank, those that come before.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovodrun/host_list.h"

namespace fasthorovod::tools {

struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  std::string host;
};

/// Fills the hosts' slots in order. Fewer slots than ranks is an error that says how many were
/// asked and found.
core::Result<std::vector<Place>> place_ranks(int ranks, const std::vector<Host>& hosts);

/// This machine posing as `count` hosts called virtual-0, virtual-1, ...: blocks of ranks that
/// differ by one at most. More hosts than ranks is an error.
core::Result<std::vector<Host>> virtual_hosts(int ranks, int count);

}  // namespace fasthorovod::tools
