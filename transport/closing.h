// Closes connected sockets so that what was written to them still arrives.
#pragma once

#include <chrono>
#include <vector>

#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

/// Ends the sending direction of each, then throws away what still comes until the peer has
/// acknowledged all our bytes or ended its own direction, at most for `limit`: a socket closed with
/// bytes unread, or sent to after it was closed, answers with a reset, and a reset takes our last
/// bytes with it.
void close_in_order(std::vector<FileDescriptor> sockets, std::chrono::milliseconds limit);

}  // namespace fasthorovod::transport
