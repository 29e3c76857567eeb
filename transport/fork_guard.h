// Keeps a forked child (a data loader's worker, say) from holding this rank's sockets open: if it
// did, the peers of a dead rank would never see its connections end.
//
// In a child, each guarded descriptor is pointed at /dev/null instead of being closed, so that its
// number stays taken and no destructor that runs in the child closes a file of somebody else.
// Children made without fork handlers (posix_spawn, vfork) are covered by close-on-exec, which
// every socket of ours carries.
//
// Thread: any.
#pragma once

#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

/// Guards a descriptor until its FileDescriptor closes or releases it.
void drop_on_fork(const FileDescriptor& descriptor);

/// Ends the guard; FileDescriptor calls it.
void forget_on_fork(int fd);

}  // namespace fasthorovod::transport
