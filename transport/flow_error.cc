#include "transport/flow_error.h"

#include <fmt/format.h>

namespace fasthorovod::transport {

core::Error flow_failed(int peer, std::string_view tried, int errno_value) {
  return flow_error(peer, core::ErrorCode::kPeerLost,
                    core::system_error(tried, errno_value).message);
}

core::Error flow_error(int peer, core::ErrorCode code, std::string_view what) {
  return {code, fmt::format("on a data flow of rank {}: {}", peer, what), peer};
}

}  // namespace fasthorovod::transport
