// Result<T> and Status: how everything that can happen to a healthy program is reported.
//
// A peer that went away, a time limit, a frame that makes no sense or a bad setting is a value, not
// an exception: callers must look at it ([[nodiscard]]). The method names are those of
// std::expected (C++23), so that the switch is a rename. Exceptions stop where a library throws
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace fasthorovod::core {

enum class ErrorCode {
  kInvalidArgument,  // the caller passed something that can never work; nothing was sent
  kDuplicateName,    // a tensor of that name is still in flight in that group
  kMismatch,  // ranks disagree about an operation; nothing was moved, the next operation works
  kPeerLost,  // a rank, or the link to it, is gone
  kTimedOut,  // a stated limit passed
  kStalled,   // a rank is alive but did not submit what the others wait for
  kProtocol,  // bytes that no peer of this version sends
  kAuthentication,  // a peer could not prove that it belongs to this job
  kShutdown,        // this rank or another one shut the engine down
  kUnavailable,     // not started, not built in, or refused by the system for now
  kSystem,          // a system call failed; the message holds the system's words
  kInternal,        // a bug of ours
};

/// The name of a code as users see it in messages, e.g. "peer lost".
std::string_view to_string(ErrorCode code);

/// What went wrong: a code for programs, a sentence for people, and the rank at fault where one is
/// known.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  int culprit = -1;  // the rank at fault, or -1 when no single rank is

  /// The same error with one clause put before its sentence ("while waiting for rank 3: ...").
  [[nodiscard]] Error with_context(std::string_view clause) &&;
};

/// The message of a failed system call: what was tried and the system's words for errno_value.
Error system_error(std::string_view tried, int errno_value);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// The outcome of something that yields no value: success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] Error& error() & { return *error_; }
  [[nodiscard]] const Error& error() const& { return *error_; }
  [[nodiscard]] Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace fasthorovod::core
