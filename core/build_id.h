// The identity of this build: equal in the extension, the auxiliary and the programs built from the
// same sources.
#pragma once

#include <string_view>

namespace fasthorovod::core {

/// Sixteen hexadecimal digits. Two binaries share memory only if their ids are equal.
std::string_view build_id() noexcept;

/// The version of the project, e.g. "0.1.0".
std::string_view version() noexcept;

}  // namespace fasthorovod::core
