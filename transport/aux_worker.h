// An auxiliary process from the inside: says hello, then runs a lane for its rank whenever it is
// attached, until the rank is gone.
//
// Threads: the caller hears the rank's messages; the lane has a thread of its own.
#pragma once

#include <string_view>

#include "transport/file_descriptor.h"
#include "transport/remote_work.h"

namespace fasthorovod::transport {

/// The descriptor of its socket, and the option that tells the program it was started by a rank.
inline constexpr int kAuxSocket = 3;
inline constexpr std::string_view kAuxOption = "--started-by-a-rank";

/// Returns the exit status. What can not go on is said on standard error.
int run_auxiliary(FileDescriptor socket, const AddFunction& add);

}  // namespace fasthorovod::transport
