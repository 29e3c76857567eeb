// The processor cores this process may use. Any thread.
#pragma once

namespace fasthorovod::transport {

/// As the scheduler lets the calling thread run, and no more than a container's quota pays for; at
/// least 1.
int usable_cores();

}  // namespace fasthorovod::transport
