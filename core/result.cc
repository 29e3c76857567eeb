#include "core/result.h"

#include <fmt/format.h>

#include <system_error>

namespace fasthorovod::core {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kDuplicateName:
      return "duplicate name";
    case ErrorCode::kMismatch:
      return "mismatch between ranks";
    case ErrorCode::kPeerLost:
      return "peer lost";
    case ErrorCode::kTimedOut:
      return "timed out";
    case ErrorCode::kStalled:
      return "stalled";
    case ErrorCode::kProtocol:
      return "protocol error";
    case ErrorCode::kAuthentication:
      return "authentication failed";
    case ErrorCode::kShutdown:
      return "shut down";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kSystem:
      return "system error";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

Error Error::with_context(std::string_view clause) && {
  message = fmt::format("{}: {}", clause, message);
  return std::move(*this);
}

Error system_error(std::string_view tried, int errno_value) {
  return {ErrorCode::kSystem,
          fmt::format("{}: {}", tried, std::system_category().message(errno_value))};
}

}  // namespace fasthorovod::core
