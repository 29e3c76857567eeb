// On which processors the threads of this process run. Thread: any.
#pragma once

#include <set>
#include <vector>

namespace fasthorovod::transport {

/// Those of the calling thread, ascending; empty when the system does not say.
std::vector<int> processors_of_thread();
/// Makes the calling thread, and threads that it starts from then on, run on these. The errno, or
/// 0.
int bind_thread(const std::vector<int>& processors);

struct OwnProcessors {
  std::vector<int> usable;  // by any thread, ascending
  std::set<int> bound;      // that single threads are bound to, which may not use all of the above
};
OwnProcessors own_processors();

}  // namespace fasthorovod::transport
