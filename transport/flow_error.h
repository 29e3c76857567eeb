// The errors of a flow: each names the peer, in words and as the culprit. Functions: any thread.
#pragma once

#include <string_view>

#include "core/result.h"

namespace fasthorovod::transport {

/// A system call on the flow failed: kPeerLost with the system's words.
core::Error flow_failed(int peer, std::string_view tried, int errno_value);

/// Something else was wrong with what the peer sent, or how it stopped.
core::Error flow_error(int peer, core::ErrorCode code, std::string_view what);

}  // namespace fasthorovod::transport
