// The congestion control of a TCP connection, by the name the kernel gives it. Stateless; any
// thread.
#pragma once

#include <string>

#include "core/result.h"

namespace fasthorovod::transport {

/// Has a connection use it, from now on.
core::Status set_congestion(int fd, const std::string& name);

/// Whether this process may use it: kInvalidArgument, with the names that the system has, if not.
/// Tried on a socket, since the kernel may first have to load it.
core::Status check_congestion(const std::string& name);

}  // namespace fasthorovod::transport
