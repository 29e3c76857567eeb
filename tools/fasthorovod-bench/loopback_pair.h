// Two ends of a TCP connection inside this host. Thread: any.
#pragma once

#include <utility>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

/// Neither end waits.
core::Result<std::pair<transport::FileDescriptor, transport::FileDescriptor>> loopback_pair();

}  // namespace fasthorovod::tools
