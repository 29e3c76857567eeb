#include "torch_binding/c10d/pending_works.h"

namespace fasthorovod::torch_binding {
namespace {

using c10d::ErrorType;
using core::ErrorCode;

/// SUCCESS: an error of the caller, or an end that was asked for.
ErrorType error_type(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTimedOut:
      return ErrorType::TIMEOUT;
    case ErrorCode::kPeerLost:
      return ErrorType::REMOTE_ERROR;
    case ErrorCode::kProtocol:
    case ErrorCode::kSystem:
    case ErrorCode::kInternal:
      return ErrorType::COMM_ERROR;
    default:
      return ErrorType::SUCCESS;
  }
}

}  // namespace

void PendingWorks::began() {
  const std::lock_guard lock(mutex_);
  ++pending_;
}

void PendingWorks::settled(const core::Status& status) {
  const ErrorType type = status ? ErrorType::SUCCESS : error_type(status.error().code);
  const std::lock_guard lock(mutex_);
  if (type != ErrorType::SUCCESS) error_ = type;
  if (--pending_ == 0) idle_.notify_all();
}

void PendingWorks::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return pending_ == 0; });
}

ErrorType PendingWorks::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace fasthorovod::torch_binding
